package browsertest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// fieldRoles are the roles of the fields that Fill fills.
var fieldRoles = append([]string{"textbox", "searchbox", "combobox", "spinbutton", "slider", "ColorWell"}, dateRoles...)

// find waits until one element has a role and a name and can be used, and returns it.
func (p *Page) find(roles []string, name string) *axNode {
	p.t.Helper()
	var node *axNode
	var tree axTree
	state := "is not on the page"
	p.poll(func() bool {
		var err error
		if tree, err = p.accessibilityTree(); err != nil { // while the page changes
			return false
		}
		found := tree.named(roles, name)
		switch {
		case len(found) > 1:
			p.fail("%d elements are %s %q: a person cannot choose", len(found), roles[0], name)
		case len(found) == 0:
			state = "is not on the page"
		case found[0].property("disabled") == "true":
			state = "is disabled"
		default:
			node = found[0]
		}
		return node != nil
	}, func() string {
		return fmt.Sprintf("%s %q %s, which has %q", roles[0], name, state, tree.names(roles))
	})
	return node
}

// Has reports whether the page shows an element of a role and a name. It does not wait.
func (p *Page) Has(role, name string) bool {
	p.t.Helper()
	tree, err := p.accessibilityTree()
	if err != nil {
		p.fail("%v", err)
	}
	return len(tree.named([]string{role}, name)) > 0
}

// callFunction calls a JavaScript function with an element as this, and decodes what it returns.
func (p *tab) callFunction(n *axNode, function string, result any, args ...any) error {
	var resolved struct{ Object struct{ ObjectID string } }
	if err := p.call("DOM.resolveNode", object{"backendNodeId": n.BackendDOMNodeID}, &resolved); err != nil {
		return err
	}
	arguments := []object{}
	for _, a := range args {
		arguments = append(arguments, object{"value": a})
	}
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *exception
	}
	params := object{"objectId": resolved.Object.ObjectID, "functionDeclaration": function, "arguments": arguments, "returnByValue": true}
	if err := p.call("Runtime.callFunctionOn", params, &answer); err != nil {
		return err
	}
	if answer.ExceptionDetails != nil {
		return fmt.Errorf("%w: %s", errScript, answer.ExceptionDetails)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer.Result.Value, result)
}

// findPoint finds a point of an element, or of its label, that a mouse can reach. It scrolls there first.
const findPoint = `function() {
	const element = this.nodeType === Node.ELEMENT_NODE ? this : this.parentElement;
	element.scrollIntoView({block: "center", inline: "nearest", behavior: "instant"});
	let cover = "nothing: it has no size";
	for (const target of [element, ...(element.labels || [])]) {
		for (const r of target.getClientRects()) {
			const x = r.left + r.width / 2, y = r.top + r.height / 2;
			const hit = r.width && r.height && document.elementFromPoint(x, y);
			if (hit && target.contains(hit)) return {x, y};
			if (hit) cover = hit.outerHTML.slice(0, 100);
		}
	}
	return {cover};
}`

// Click clicks on the element of a role and a name: ("button", "Create"), ("link", "Keys"), ("checkbox", "Live"). If that
// opens a page it waits until the page has loaded. It fails if another element covers this one.
func (p *Page) Click(role, name string) {
	p.t.Helper()
	p.click(role, name, 1)
}

// DoubleClick clicks twice in a row, as an impatient person does, and then waits as Click does.
func (p *Page) DoubleClick(role, name string) {
	p.t.Helper()
	p.click(role, name, 2)
}

func (p *Page) click(role, name string, times int) {
	p.t.Helper()
	var at struct {
		X, Y  float64
		Cover string
	}
	p.poll(func() bool {
		at.Cover = "" // an error while the page changes, or a cover while something moves
		return p.callFunction(p.find([]string{role}, name), findPoint, &at) == nil && at.Cover == ""
	}, func() string { return fmt.Sprintf("%s %q is covered by %s", role, name, at.Cover) })
	mouse := func(event string, count int) {
		p.call("Input.dispatchMouseEvent", object{"type": event, "x": at.X, "y": at.Y, "button": "left", "clickCount": count}, nil)
	}
	p.call("Input.dispatchMouseEvent", object{"type": "mouseMoved", "x": at.X, "y": at.Y}, nil)
	for i := range times {
		mouse("mousePressed", i+1)
		mouse("mouseReleased", i+1)
	}
	p.settle()
}

// download is a file that a page saves.
type download struct{ GUID, SuggestedFilename, State string }

// Download clicks as Click does, on what saves a file, and returns the name that the file gets and its content.
func (p *Page) Download(role, name string) (file string, content []byte) {
	p.t.Helper()
	p.mu.Lock()
	before := len(p.downloads)
	p.mu.Unlock()
	p.Click(role, name)
	var saved download
	p.poll(func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.downloads) > before {
			saved = *p.downloads[before]
		}
		return saved.State == "completed" || saved.State == "canceled"
	}, func() string { return fmt.Sprintf("%s %q saves no file", role, name) })
	content, err := os.ReadFile(filepath.Join(p.context.downloads, saved.GUID))
	if err != nil {
		p.fail("%s %q, %s: %v", role, name, saved.State, err)
	}
	return saved.SuggestedFilename, content
}

// Clipboard is the text that the page has copied. All pages of a Browser have one clipboard.
func (p *Page) Clipboard() string {
	p.t.Helper()
	p.require("Browser.grantPermissions", object{"permissions": []string{"clipboardReadWrite"}, "browserContextId": p.context.id}, nil)
	text, _ := p.Eval("navigator.clipboard.readText()").(string)
	return text
}

// prepareField selects the text of a field, so that typing replaces it. It sets the value of a field that takes no text of
// its own, such as a date, and reports that.
const prepareField = `function(text) {
	if (["date", "datetime-local", "month", "week", "time", "range", "color"].includes(this.type)) {
		this.value = text;
		this.dispatchEvent(new Event("input", {bubbles: true}));
		this.dispatchEvent(new Event("change", {bubbles: true}));
		return true;
	}
	if (this.select) this.select();
	return false;
}`

// longestTyped is the length of a text that a person types. A longer one is pasted.
const longestTyped = 200

// Fill types a text into the field with a label, in place of what is in it. Each character is a key press; a text of more
// than 200 characters is pasted. A date, a time, a colour and a range are set at once, by their value in HTML.
func (p *Page) Fill(label, text string) {
	p.t.Helper()
	field := p.find(fieldRoles, label)
	p.require("DOM.focus", object{"backendNodeId": field.BackendDOMNodeID}, nil)
	var isSet bool
	if err := p.callFunction(field, prepareField, &isSet, text); err != nil {
		p.fail("fill %q: %v", label, err)
	}
	switch {
	case isSet:
	case text == "":
		p.Press("Backspace")
	case len(text) > longestTyped:
		p.require("Input.insertText", object{"text": text}, nil)
	default:
		p.Type(text)
	}
}

// Type types a text where the focus is.
func (p *Page) Type(text string) {
	p.t.Helper()
	for _, r := range text {
		if r == '\n' {
			p.pressKey("Enter")
		} else {
			p.pressKey(string(r))
		}
	}
	p.settle()
}

// Choose chooses an option of the select element with a label, with the arrow keys.
func (p *Page) Choose(label, option string) {
	p.t.Helper()
	list := p.find([]string{"combobox", "listbox"}, label)
	p.require("DOM.focus", object{"backendNodeId": list.BackendDOMNodeID}, nil)
	var steps *int // nil if there is no such option
	err := p.callFunction(list, `function(label) {
		const enabled = [...this.options].filter(o => !o.disabled && !o.closest("optgroup:disabled"));
		const at = enabled.findIndex(o => o.label.trim() === label);
		return at < 0 ? null : at - enabled.indexOf(this.selectedOptions[0]);
	}`, &steps, option)
	if err != nil || steps == nil {
		p.fail("choose %q in %q: no such option (%v)", option, label, err)
	}
	key := "ArrowDown"
	if *steps < 0 {
		key = "ArrowUp"
	}
	for range max(*steps, -*steps) {
		p.pressKey(key)
	}
	p.settle()
}

// Press presses a key where the focus is: a character, or a name as in KeyboardEvent.key ("Enter", "Tab", "Escape",
// "ArrowDown", "Backspace"), after modifiers ("Shift+Tab", "Control+Enter"). If that opens a page it waits until the page has
// loaded.
func (p *Page) Press(key string) {
	p.t.Helper()
	p.pressKey(key)
	p.settle()
}

// TabOrder are the elements that the Tab key reaches, as Focused describes them, from the first to the last. The focus is on
// none of them afterwards.
func (p *Page) TabOrder() (order []string) {
	p.t.Helper()
	p.Eval("document.activeElement.blur(), getSelection().collapse(document.body, 0)")
	for {
		p.Press("Tab")
		if p.Eval("document.activeElement === document.body") == true {
			return order
		}
		if order = append(order, p.Focused()); len(order) > mostStops {
			p.fail("the Tab key does not leave the page: %q", order)
		}
	}
}

// mostStops is more than a page has elements for the Tab key.
const mostStops = 1000

// TabTo presses Tab until the element of a role and a name has the focus, as a person without a mouse does.
func (p *Page) TabTo(role, name string) {
	p.t.Helper()
	want := (&axNode{Role: axValue{role}, Name: axValue{name}}).title()
	var passed []string
	for len(passed) < mostStops {
		p.Press("Tab")
		at := p.Focused()
		if at == want {
			return
		}
		if passed = append(passed, at); len(passed) > 1 && at == passed[0] {
			break
		}
	}
	p.fail("the Tab key does not reach %s, only %q", want, passed)
}

// modifierBits are the modifiers of a key as the protocol has them.
var modifierBits = map[string]int{"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}

// keyCodes are the codes of the keys that have a name. Pages of old style read them, and Chromium itself does.
var keyCodes = map[string]int{
	"Backspace": 8, "Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36,
	"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Delete": 46,
}

func (p *Page) pressKey(key string) {
	p.t.Helper()
	modifiers := 0
	for name, bit := range modifierBits {
		if strings.Contains(key, name+"+") {
			key, modifiers = strings.Replace(key, name+"+", "", 1), modifiers|bit
		}
	}
	event := object{"key": key, "code": key, "modifiers": modifiers}
	characters := []rune(key)
	switch code, isNamed := keyCodes[key]; {
	case isNamed:
		event["windowsVirtualKeyCode"] = code
		if key == " " {
			event["code"] = "Space"
		}
	case len(characters) != 1:
		p.fail("there is no key %q", key)
	case unicode.IsLetter(characters[0]) && characters[0] < unicode.MaxASCII:
		event["code"], event["windowsVirtualKeyCode"] = "Key"+strings.ToUpper(key), int(unicode.ToUpper(characters[0]))
	case unicode.IsDigit(characters[0]) && characters[0] < unicode.MaxASCII:
		event["code"], event["windowsVirtualKeyCode"] = "Digit"+key, int(characters[0])
	}
	down, up := object{"type": "rawKeyDown"}, object{"type": "keyUp"}
	switch {
	case key == "Enter":
		down["type"], down["text"] = "keyDown", "\r"
	case len(characters) == 1 && modifiers&^modifierBits["Shift"] == 0:
		down["type"], down["text"] = "keyDown", key
	}
	for _, e := range []object{down, up} {
		for name, value := range event {
			e[name] = value
		}
		if err := p.call("Input.dispatchKeyEvent", e, nil); err != nil {
			p.fail("press %q: %v", key, err)
		}
	}
}
