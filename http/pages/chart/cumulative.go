package chart

import (
	"html/template"
	"strconv"
	"strings"
)

// Cumulative is how a sum has grown day by day, against the cap that it must not exceed, and how it would continue at its pace.
type Cumulative struct {
	ID      string
	Name    string
	Summary string
	Days    []Day   // of the whole period, to come included
	Sums    []int64 // at the end of each day that has begun
	Elapsed float64 // days that have passed, with the part of today
	Cap     int64
	Pace    float64 // a day; 0 draws no line ahead
	Number  func(int64) string
}

// SVG draws the figure.
func (c Cumulative) SVG() template.HTML {
	var d drawing
	last := int64(0)
	if len(c.Sums) > 0 {
		last = c.Sums[len(c.Sums)-1]
	}
	scale := NewScale(max(c.Cap, last))
	d.openFigure(c.ID, c.Name, c.Summary)
	d.drawScale(scale, c.Number)
	days := float64(max(len(c.Days), 1))
	// The shapes have coordinates of their own, which are stretched to the drawing; the width of their lines is not.
	d.open("svg", "viewBox", "0 0 1000 1000", "preserveAspectRatio", "none", "width", "100%", "height", "100%")
	var path strings.Builder
	path.WriteString("M0 1000")
	x := 0.0
	for i, sum := range c.Sums {
		x = min(float64(i+1), max(c.Elapsed, float64(i)), days)
		path.WriteString("L" + coordinate(x/days) + " " + coordinate(1-scale.share(float64(sum))))
	}
	d.empty("path", "class", "sum-line", "d", path.String(), "vector-effect", "non-scaling-stroke")
	path.WriteString("L" + coordinate(x/days) + " 1000Z")
	d.empty("path", "class", "sum", "d", path.String())
	if c.Pace > 0 && x < days {
		endX, end := days, float64(last)+c.Pace*(days-x)
		if end > float64(scale.Max) {
			endX, end = x+(float64(scale.Max)-float64(last))/c.Pace, float64(scale.Max)
		}
		d.empty("line", "class", "level ahead", "vector-effect", "non-scaling-stroke", "x1", coordinate(x/days), "y1", coordinate(1-scale.share(float64(last))),
			"x2", coordinate(endX/days), "y2", coordinate(1-scale.share(end)))
	}
	d.close("svg")
	if c.Cap > 0 {
		d.drawLevel(LineCap, 1-scale.share(float64(c.Cap)))
	}
	d.labelDays(c.Days)
	d.close("svg")
	return d.html()
}

// coordinate writes a share of the drawing in thousandths.
func coordinate(share float64) string { return strconv.FormatFloat(share*1000, 'f', 1, 64) }

// Key is an entry of a legend for a line of a kind.
func Key(kind, name string) template.HTML {
	var d drawing
	d.writeKey(kind, name, "")
	return d.html()
}

func (d *drawing) writeKey(kind, name, note string) {
	d.open("li")
	d.open("svg", "class", "swatch", "width", "24", "height", "16", "aria-hidden", "true")
	d.empty("line", "class", "level "+kind, "x1", "0", "x2", "24", "y1", "8", "y2", "8")
	d.close("svg")
	d.text("span", name)
	if note != "" {
		d.text("span", note, "class", "soft")
	}
	d.close("li")
}
