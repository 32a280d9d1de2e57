// A text in pieces; each becomes a text node, whatever it says.
export default {
  props: { pieces: Array, tag: String },
  render() {
    const h = Vue.h;
    const drawn = { placeholder: "mark", escape: "span", cut: "span" };
    return h(this.tag || "div", { class: "said", dir: "auto", tabindex: 0 },
      (this.pieces || []).map(([kind, text]) => (drawn[kind] ? h(drawn[kind], { class: kind }, text) : text)));
  },
};
