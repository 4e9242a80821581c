package browsertest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"testing"
)

// axeScript is axe-core, which knows the rules of WCAG that a program can check.
//
//go:embed third_party/axe-core-4.14.1/axe.min.js
var axeScript string

// runAxe runs the rules of WCAG 2.2 at level AA, and what axe-core calls best practice.
const runAxe = `axe.run(document, {
	runOnly: {type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]},
	resultTypes: ["violations"], iframes: false,
}).then(result => JSON.stringify(result.violations.flatMap(v => v.nodes.map(n =>
	({rule: v.id, help: v.help, selector: n.target.join(" "), html: n.html, summary: n.failureSummary})))))`

// findOverflow lists the elements that make the page wider than its window: the page scrolls horizontally then. An element
// inside a box that scrolls by itself does not.
const findOverflow = `(() => {
	const root = document.documentElement, width = root.clientWidth;
	if (root.scrollWidth <= width && document.body.scrollWidth <= document.body.clientWidth) return [];
	const scrolls = e => e && e !== document.body && e !== root && (getComputedStyle(e).overflowX !== "visible" || scrolls(e.parentElement));
	const wide = [...document.body.querySelectorAll("*")].filter(e => e.getBoundingClientRect().right > width + 0.5 && !scrolls(e.parentElement));
	return [root.scrollWidth + " pixels wide in " + width, ...wide.slice(-5).map(e => e.outerHTML.slice(0, 120))];
})()`

// isStill is whether nothing on the page moves or fades but what does so without end.
const isStill = `document.getAnimations().every(a => a.playState !== "running" || a.effect.getComputedTiming().endTime === Infinity)`

// CheckPage demands what holds for every page in every state. It reports everything that does not to t, and fails nothing
// otherwise: no complaint since the last call of Complaints, no horizontal scroll, no accessibility violation. It waits for the
// end of transitions first: a text that is fading in is not legible yet.
func CheckPage(t testing.TB, p *Page) {
	t.Helper()
	for _, fault := range p.With(t).faults() {
		t.Errorf("%s (%d pixels): %s", p.URL(), p.options.Width, fault)
	}
}

// faults are what CheckPage reports.
func (p *Page) faults() []string {
	p.t.Helper()
	p.WaitUntil(isStill)
	found := p.Complaints()
	overflow, ok := p.Eval(findOverflow).([]any)
	if !ok {
		p.fail("the page has no answer about its width")
	}
	if len(overflow) > 0 {
		found = append(found, fmt.Sprintf("horizontal scroll: %v", overflow))
	}
	return append(found, p.accessibilityViolations()...)
}

// accessibilityViolations runs axe-core in a world of its own, which shares the document with the page and neither its
// scripts nor its Content Security Policy. axe-core needs promises, so a page with JavaScript off has it on meanwhile; the
// page's own scripts do not run, because it has been loaded without them.
func (p *Page) accessibilityViolations() (found []string) {
	p.t.Helper()
	if p.options.NoScript {
		p.require("Emulation.setScriptExecutionDisabled", object{"value": false}, nil)
		defer p.require("Emulation.setScriptExecutionDisabled", object{"value": true}, nil)
	}
	value, err := p.evaluate(runAxe, p.loadAxe())
	text, _ := value.(string)
	var violations []struct{ Rule, Help, Selector, HTML, Summary string }
	if err == nil {
		err = json.Unmarshal([]byte(text), &violations)
	}
	if err != nil {
		p.fail("axe-core: %v", err)
	}
	for _, v := range violations {
		found = append(found, fmt.Sprintf("accessibility %s: %s: %s: %s (%s)", v.Rule, v.Selector, v.Help, abbreviate(v.HTML), foldSpaces(v.Summary)))
	}
	return found
}

// loadAxe returns the world of the document that has axe-core. It loads axe-core once for each document.
func (p *Page) loadAxe() (world int) {
	p.t.Helper()
	p.mu.Lock()
	world = p.axeWorld
	p.mu.Unlock()
	if world != 0 {
		return world
	}
	var made struct{ ExecutionContextID int }
	p.require("Page.createIsolatedWorld", object{"frameId": p.frame, "worldName": "axe"}, &made)
	if _, err := p.evaluate(axeScript, made.ExecutionContextID); err != nil {
		p.fail("axe-core: %v", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.axeWorld = made.ExecutionContextID
	return p.axeWorld
}
