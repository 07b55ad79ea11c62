import { defineConfig, type HtmlTagDescriptor, type Plugin } from "vite";

/** Names the program in the document, so that it loads beside the entry, which imports it after the first requests. */
const preloadProgram: Plugin = {
  name: "preload-program",
  transformIndexHtml: {
    order: "post",
    handler(_, { bundle = {}, chunk }) {
      const named = new Set<string>();
      const name = (file: string) => {
        const found = bundle[file];
        if (found?.type !== "chunk" || named.has(file) || file === chunk?.fileName || chunk?.imports.includes(file)) return;
        named.add(file);
        found.imports.forEach(name);
      };
      chunk?.dynamicImports.forEach(name);
      return [...named].map((file): HtmlTagDescriptor => ({ tag: "link", attrs: { rel: "modulepreload", crossorigin: true, href: `/page/${file}` }, injectTo: "head" }));
    },
  },
};

// The web UI is served at `/`, its assets below /page/assets (operator/tarsy/http/web_ui.py).
export default defineConfig({
  base: "/page/",
  plugins: [preloadProgram],
  build: {
    outDir: "../tarsy/http/page",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
