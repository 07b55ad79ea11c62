/** The page: who is signed in decides what there is. */
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { applyTheme, savedTheme } from "./logic/theme";
import "./style.css";

applyTheme(savedTheme());
// A part of a page that was replaced since is not there any more; the new page is.
addEventListener("vite:preloadError", () => location.reload());
const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
