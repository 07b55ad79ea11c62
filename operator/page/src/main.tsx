/** Starts the web UI. */
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { applyTheme, savedTheme } from "./logic/theme";
import "./style/index.css";

applyTheme(savedTheme());
// After an upgrade, chunks of the previous build do not exist any more: load the current build.
addEventListener("vite:preloadError", () => location.reload());
const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
