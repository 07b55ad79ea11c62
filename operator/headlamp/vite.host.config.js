import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// One view without Headlamp, for pictures. The plugin itself is built by headlamp-plugin.
export default defineConfig({
  root: 'host',
  base: './',
  plugins: [react()],
  build: { outDir: '../../../build/headlamp-host', emptyOutDir: true, chunkSizeWarningLimit: 2000 },
});
