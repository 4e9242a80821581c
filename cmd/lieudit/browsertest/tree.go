package browsertest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// axNode is a node of the accessibility tree, as screen readers get it.
type axNode struct {
	NodeID           string
	Ignored          bool
	Role, Name       axValue
	Value            axValue
	Description      axValue
	Properties       []axProperty
	ChildIDs         []string
	BackendDOMNodeID int
}

type axProperty struct {
	Name  string
	Value axValue
}

type axValue struct{ Value any }

func (v axValue) String() string {
	if v.Value == nil {
		return ""
	}
	return foldSpaces(fmt.Sprint(v.Value))
}

// property is the value of a property, or "".
func (n *axNode) property(name string) string {
	for _, p := range n.Properties {
		if p.Name == name {
			return p.Value.String()
		}
	}
	return ""
}

// axTree is the accessibility tree of a page, the root first.
type axTree []*axNode

func (p *Page) accessibilityTree() (axTree, error) {
	var answer struct{ Nodes axTree }
	err := p.call("Accessibility.getFullAXTree", nil, &answer)
	return answer.Nodes, err
}

// named are the nodes of some roles with a name. Hidden ones are not in the tree.
func (tree axTree) named(roles []string, name string) (found []*axNode) {
	name = foldSpaces(name)
	for _, n := range tree {
		if !n.Ignored && slices.Contains(roles, n.Role.String()) && n.Name.String() == name {
			found = append(found, n)
		}
	}
	return found
}

// names are the names of the nodes of some roles, in the order of the page.
func (tree axTree) names(roles []string) []string {
	names := []string{}
	for n := range tree.inOrder {
		if slices.Contains(roles, n.Role.String()) {
			names = append(names, n.Name.String())
		}
	}
	return names
}

// inOrder iterates over the nodes in the order of the page.
func (tree axTree) inOrder(yield func(*axNode) bool) {
	tree.walk(func(n, parent *axNode, depth int) bool { return yield(n) })
}

// walk visits the nodes that a screen reader presents, in the order of the page, each with the one around it.
func (tree axTree) walk(visit func(n, parent *axNode, depth int) bool) {
	byID := map[string]*axNode{}
	for _, n := range tree {
		byID[n.NodeID] = n
	}
	var descend func(n, parent *axNode, depth int) bool
	descend = func(n, parent *axNode, depth int) bool {
		if n == nil {
			return true
		}
		if !n.Ignored && !slices.Contains(silentRoles, n.Role.String()) {
			if !visit(n, parent, depth) {
				return false
			}
			parent, depth = n, depth+1
		}
		if !n.Ignored && slices.Contains(dateRoles, n.Role.String()) {
			return true // Chromium's own fields inside are named and ordered by its language
		}
		for _, id := range n.ChildIDs {
			if !descend(byID[id], parent, depth) {
				return false
			}
		}
		return true
	}
	if len(tree) > 0 {
		descend(tree[0], nil, 0)
	}
}

// Names are the names of all elements of a role, in the order of the page.
func (p *Page) Names(role string) []string {
	p.t.Helper()
	tree, err := p.accessibilityTree()
	if err != nil {
		p.fail("%v", err)
	}
	return tree.names([]string{role})
}

// Focused is the role and the name of the element that has the focus, as `button "Create"`.
func (p *Page) Focused() string {
	p.t.Helper()
	tree, err := p.accessibilityTree()
	if err != nil {
		p.fail("%v", err)
	}
	focused := ""
	for n := range tree.inOrder { // the document has it too
		if n.property("focused") == "true" {
			focused = n.title()
		}
	}
	return focused
}

// title is a node's role and name.
func (n *axNode) title() string {
	if name := n.Name.String(); name != "" {
		return fmt.Sprintf("%s %q", n.Role, name)
	}
	return n.Role.String()
}

// shownProperties are the properties in the text of AccessibilityTree: those that a screen reader says.
var shownProperties = []string{
	"level", "checked", "pressed", "expanded", "selected", "disabled", "required", "readonly", "invalid", "multiselectable", "hasPopup", "live", "modal", "url",
}

// silentRoles are the roles of nodes that a screen reader passes over. Their children stand in their place.
var silentRoles = []string{"generic", "none", "InlineTextBox", "LineBreak", "MenuListPopup"}

// dateRoles are Chromium's roles of fields of dates and times.
var dateRoles = []string{"Date", "DateTime", "InputTime"}

// AccessibilityTree is what a screen reader finds on the page: a line for each element with its role, its name, its value and
// its state, indented as it is nested. It has nothing that changes from run to run by itself, so it is fit for a golden file.
// A text that only repeats the name of its element is left out. Of an address the host is left out, if it is the page's own.
func AccessibilityTree(p *Page) string {
	p.t.Helper()
	tree, err := p.accessibilityTree()
	if err != nil {
		p.fail("%v", err)
	}
	origin, _ := p.Eval("location.origin").(string)
	var b strings.Builder
	tree.walk(func(n, parent *axNode, depth int) bool {
		isRepeated := n.Role.String() == "StaticText" && parent != nil && slices.Contains([]string{parent.Name.String(), parent.Value.String()}, n.Name.String())
		if !isRepeated {
			b.WriteString(strings.Repeat("  ", depth) + n.line(origin) + "\n")
		}
		return true
	})
	return b.String()
}

// line is a node's line of AccessibilityTree.
func (n *axNode) line(origin string) string {
	line := n.title()
	if value := n.Value.String(); value != "" && value != n.Name.String() {
		line += fmt.Sprintf(" value=%q", value)
	}
	if description := n.Description.String(); description != "" {
		line += fmt.Sprintf(" description=%q", description)
	}
	if n.Role.String() == "RootWebArea" {
		return line
	}
	for _, name := range shownProperties {
		value := n.property(name)
		isDefault := value == "" || value == "false" && name != "expanded" && name != "checked" && name != "pressed" && name != "selected"
		if isDefault || name == "live" && value == "off" {
			continue
		}
		if name == "url" {
			value = strings.TrimPrefix(value, origin)
		}
		encoded, _ := json.Marshal(value)
		line += " " + name + "=" + strings.Trim(string(encoded), `"`)
	}
	return line
}
