// Embedded in another page (?embed=1, or #embed=1): only the figure and its controls, a line that says where from, and
// the height told to the page around, which may fit its frame to it.
const FRAME_WIDTH = 800; // CSS pixels, of a usual frame

// Whether the page is to be shown as an embed.
function isEmbed(address) {
  return new URLSearchParams(location.search).get("embed") === "1" || address.get("embed") === "1";
}

// Turns the page into an embed, where it is to be one.
function bindEmbed(lab, signal) {
  if (!isEmbed(lab.address)) return;
  document.documentElement.classList.add("embed");
  const link = make("a", { class: "full", target: "_blank", rel: "noopener" }, say("Open in K3 Serve Lab"));
  const keepState = () => {
    lab.address.write();
    const hash = formatState([...lab.address.state].filter(([name]) => name !== "embed"));
    link.href = location.pathname + (hash && `#${hash}`);
  };
  keepState();
  for (const type of ["pointerdown", "focus", "click"]) link.addEventListener(type, keepState);
  $(".top").append(link);
  const watching = new ResizeObserver(() => {
    const { height } = $(".page").getBoundingClientRect();
    window.parent.postMessage({ type: "k3:height", height: Math.ceil(height) }, "*");
  });
  watching.observe($(".page"));
  signal.addEventListener("abort", () => watching.disconnect());
}

// The frame to paste into another page, as high as the figure and its controls are now.
function embedCode() {
  const url = new URL(location.href);
  url.searchParams.set("embed", "1");
  url.hash = formatState([...K3.lab.address.state].filter(([name]) => !["embed", "guess", "pin"].includes(name)));
  const figures = $$("#lab .scene").length ? $$("#lab .scene") : $$("#lab .charts");
  const { offsetHeight, offsetWidth } = $("#lab .panel");
  const controls = offsetHeight * offsetWidth / FRAME_WIDTH; // there in several columns
  const height = Math.ceil(figures.reduce((sum, node) => sum + node.offsetHeight, controls + 120));
  const frame = make("iframe", { src: url.href, title: page.experiment.title, width: "100%", height, loading: "lazy", style: "border:0" });
  return frame.outerHTML;
}
