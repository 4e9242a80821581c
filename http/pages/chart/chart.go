// Package chart draws figures as SVG in the page itself: bars by day, and small lines of bars without an axis. The text is the
// caller's, in the language of the reader; the colours are those of the page's style sheet, to which Sheet belongs.
//
//	Bars.HTML ──> scale: round numbers that hold the bars and lines ──> grid, bars, lines, labels, legend
//	Spark.HTML
//
// A figure is one image for screen readers, named by its title and description; the page has the same numbers as a table
// beneath it. Patterns tell the series apart where colours do not: in print, and for those who do not see them.
//
// A figure is as wide as its place. Its bars are stretched and its text is not, so that a phone shows readable labels; for
// that they are two coordinate systems, one in the other. No element has a style, which a strict Content Security Policy
// forbids.
package chart

import (
	_ "embed"
	"encoding/xml"
	"fmt"
	"html/template"
	"strconv"
	"strings"
)

// Sheet is the part of the style sheet for the classes of this package.
//
//go:embed chart.css
var Sheet string

// canvas is the text of a figure while it is drawn.
type canvas struct{ strings.Builder }

// printf writes markup. Its arguments are numbers, or text that is escaped already.
func (c *canvas) printf(format string, args ...any) { fmt.Fprintf(c, format, args...) }

// escape makes any text fit for content and attributes of XML and HTML. What XML cannot hold becomes U+FFFD.
func escape(text string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(text)) // a Builder takes everything
	return b.String()
}

// coordinate writes a number with at most two digits after the point.
func coordinate(x float64) string {
	text := strings.TrimRight(strconv.FormatFloat(x, 'f', 2, 64), "0")
	if text = strings.TrimSuffix(text, "."); text == "-0" {
		return "0"
	}
	return text
}

// sparkHeight is the height of a Spark in its own units. Each day is 3 of them wide.
const sparkHeight = 24

// Spark is a small figure of a few days, for a line of a table.
type Spark struct {
	Title  string  // what it shows, with the numbers that matter
	Values []int64 // by day
}

// HTML draws the figure. The highest day has the full height; every day with a value is visible.
func (s Spark) HTML() template.HTML {
	var c canvas
	var highest int64
	for _, v := range s.Values {
		highest = max(highest, v)
	}
	width := max(3*len(s.Values), 1)
	c.printf(`<svg class="chart-spark" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img"><title>%s</title>`, width, sparkHeight, escape(s.Title))
	c.printf(`<path class="chart-rest" d="M0 %s`, coordinate(sparkHeight-0.5))
	c.printf(`h%d"/><path class="chart-s1" stroke-width="2" d="`, width)
	for i, v := range s.Values {
		if v > 0 {
			c.printf("%s", bar(3*float64(i)+1.5, sparkHeight, max(float64(v)/float64(highest)*sparkHeight, 2)))
		}
	}
	c.printf(`"/></svg>`)
	return template.HTML(c.String())
}

// bar is a part of a path: a line of a height that ends at bottom. It is a bar by the width of its stroke, which takes half
// the text of a rectangle.
func bar(x, bottom, height float64) string {
	return "M" + coordinate(x) + " " + coordinate(bottom-height) + "v" + coordinate(height)
}
