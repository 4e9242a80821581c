// Package chart draws figures as SVG on the server: bars by day that are stacked by series, the sum of them against a cap, and small lines
// of a few days for tables. They need no script and no style of their own: classes name what the sheet css/chart.css of package assets
// gives colours, and series differ by patterns as well, so that they can be told apart in print and without seeing colours.
//
// All texts come from the caller, in the language of the reader. A figure is one picture to whoever cannot see it: its name and its
// summary are read, and the caller has the same figures in a table beneath.
//
// Positions and lengths are percentages of the drawing, which takes the width of its place, while letters keep their size. No library
// was found that draws so: they fix the size of the picture, and letters shrink with it on a telephone.
package chart

import (
	"bytes"
	"encoding/xml"
	"html/template"
	"math"
	"slices"
	"strconv"
)

// Series are the values of one part of each bar.
type Series struct {
	Name   string
	Values []int64 // of each bar, from 0
}

// Total is the sum of the values.
func (s Series) Total() (n int64) {
	for _, v := range s.Values {
		n += v
	}
	return n
}

// MaxSeries is how many series a figure tells apart.
const MaxSeries = 7

// Merge returns the series of a figure: the largest first, and if there are more than MaxSeries, the smallest of them as one with the
// name others.
func Merge(all []Series, others string) []Series {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b Series) int { return int(max(-1, min(1, b.Total()-a.Total()))) })
	if len(sorted) <= MaxSeries {
		return sorted
	}
	rest := Series{Name: others}
	for _, s := range sorted[MaxSeries-1:] {
		for i, v := range s.Values {
			if i == len(rest.Values) {
				rest.Values = append(rest.Values, 0)
			}
			rest.Values[i] += v
		}
	}
	return append(sorted[:MaxSeries-1:MaxSeries-1], rest)
}

// Scale is an axis from 0 with round numbers.
type Scale struct {
	Max  int64 // the end of the axis
	Step int64 // from one number to the next
}

// NewScale returns the axis on which the largest value has a place, with two to five steps of 1, 2 or 5 times a power of ten.
func NewScale(largest int64) Scale {
	const mostSteps = 5
	step := int64(1)
	for i := 0; largest > step*mostSteps; i++ {
		if step > math.MaxInt64/(2*mostSteps) {
			break // the axis ends below such a value, which is drawn as high as it goes
		}
		if i%3 == 1 {
			step = step / 2 * 5
		} else {
			step *= 2
		}
	}
	steps := max(min((largest-1)/step+1, mostSteps), 1)
	return Scale{Max: max(steps, 2) * step, Step: step}
}

// share is how far up a value is, from 0 to 1.
func (s Scale) share(v float64) float64 { return max(0, min(v/float64(s.Max), 1)) }

// drawing is an SVG that is being written.
type drawing struct{ bytes.Buffer }

// open writes the beginning of an element with pairs of attributes; close writes its end.
func (d *drawing) open(name string, attributes ...string) {
	d.start(name, attributes)
	d.WriteByte('>')
}

func (d *drawing) close(name string) { d.WriteString("</" + name + ">") }

// empty writes an element without content, and text one that has only text.
func (d *drawing) empty(name string, attributes ...string) {
	d.start(name, attributes)
	d.WriteString("/>")
}

func (d *drawing) text(name, content string, attributes ...string) {
	d.open(name, attributes...)
	d.escape(content)
	d.close(name)
}

func (d *drawing) start(name string, attributes []string) {
	d.WriteString("<" + name)
	for i := 0; i < len(attributes); i += 2 {
		d.WriteString(" " + attributes[i] + `="`)
		d.escape(attributes[i+1])
		d.WriteByte('"')
	}
}

// escape writes text so that it is text in XML and in HTML alike. What XML cannot hold becomes U+FFFD.
func (d *drawing) escape(text string) {
	xml.EscapeText(&d.Buffer, []byte(text)) // into memory
}

func (d *drawing) html() template.HTML { return template.HTML(d.String()) }

// percent writes a share of the drawing.
func percent(share float64) string {
	return strconv.FormatFloat(math.Round(share*1e4)/1e2, 'f', -1, 64) + "%"
}

// Sparkline draws a few values as small bars, without an axis; name is what is read in their place. It stands in tables.
func Sparkline(name string, values []int64) template.HTML {
	const width, height, gap = 4, 24, 1
	largest := slices.Max(append(slices.Clone(values), 1))
	var d drawing
	d.open("svg", "class", "spark", "role", "img", "aria-label", name, "viewBox", "0 0 "+strconv.Itoa(max(len(values), 1)*width)+" "+strconv.Itoa(height), "preserveAspectRatio", "none")
	d.text("title", name)
	for i, v := range values {
		class, h := "spark-zero", 1.0
		if v > 0 {
			class, h = "spark-bar", max(2, math.Round(float64(v)/float64(largest)*height))
		}
		d.empty("rect", "class", class, "x", strconv.Itoa(i*width), "y", strconv.Itoa(height-int(h)), "width", strconv.Itoa(width-gap), "height", strconv.Itoa(int(h)))
	}
	d.close("svg")
	return d.html()
}
