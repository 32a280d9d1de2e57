// A labelled field of a form, as browsers have it.
let made = 0;
export default {
  props: { modelValue: { default: "" }, label: String, kind: String, options: Array, placeholder: String, wide: Boolean, most: Number },
  emits: ["update:modelValue", "enter"],
  data() {
    return { inputId: `field-${(made += 1)}` };
  },
  render() {
    const h = Vue.h;
    const say = (event) => this.$emit("update:modelValue", event.target.value);
    const common = { id: this.inputId, value: this.modelValue, placeholder: this.placeholder, maxlength: this.most };
    let input;
    if (this.kind === "select")
      input = h("select", { ...common, onChange: say },
        this.options.map(([value, text]) => h("option", { value, selected: value === this.modelValue }, text)));
    else if (this.kind === "area") input = h("textarea", { ...common, onInput: say });
    else
      input = h("input", { ...common, type: this.kind || "text", onInput: say, autocomplete: "off", spellcheck: false,
        onKeydown: (event) => event.key === "Enter" && this.$emit("enter") });
    return h("div", { class: ["field", this.wide ? "wide" : ""] }, [h("label", { for: this.inputId }, this.label), input]);
  },
};
