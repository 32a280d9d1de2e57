// A table of texts: every cell becomes text nodes, links and badges, never markup.
export default {
  props: { columns: Array, rows: Array, label: String },
  emits: ["act"],
  methods: {
    cell(value, lead) {
      const h = Vue.h;
      if (value === null || value === undefined || value === "") return [];
      if (typeof value !== "object") return [String(value)];
      const parts = [];
      if (value.dot) parts.push(h("i", { class: "dot", style: `background:${value.dot};margin-right:7px` }));
      if (value.badge !== undefined) parts.push(h("span", { class: ["badge", value.tone] }, value.badge));
      else if (value.href) parts.push(h("a", { href: value.href, class: lead ? "stretch" : "" }, value.text));
      else if (value.text !== undefined) parts.push(h("span", { class: value.tone }, value.text));
      if (value.bar !== undefined)
        parts.push(h("span", { class: "bar", style: "display:block;margin-top:6px" }, h("i", { style: `width:${value.bar}%` })));
      for (const act of value.acts || [])
        parts.push(h("button", { type: "button", class: ["button", act.tone], disabled: act.off || null,
          onClick: () => this.$emit("act", { act: act.act, id: act.id }) }, act.text));
      if (value.sub) parts.push(h("span", { class: "sub" }, value.sub));
      return parts;
    },
  },
  render() {
    const h = Vue.h;
    const head = this.columns.map((c) => h("th", { scope: "col", class: c.kind }, c.label));
    const body = (this.rows || []).map((row) => {
      const cells = this.columns.map((c, place) =>
        h("td", { class: [c.kind, place === 0 ? "lead" : ""], "data-label": c.label }, this.cell(row[c.key], place === 0)),
      );
      const link = this.columns.length && row[this.columns[0].key]?.href;
      return h("tr", { key: row.id, class: link ? "link" : "", "data-id": row.id }, cells);
    });
    return h("table", { class: "rows", "aria-label": this.label }, [h("thead", h("tr", head)), h("tbody", body)]);
  },
};
