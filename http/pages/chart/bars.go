package chart

import (
	"html/template"
	"slices"
	"strconv"
)

// Bars are bars by day.
type Bars struct {
	ID      string // of the element; unique in the page
	Name    string // what the figure shows
	Summary string // what whoever cannot see it should know
	Days    []Day
	Series  []Series // from the bottom of each bar; their values are those of Days
	Lines   []Line
	Number  func(int64) string // writes a number of the axis
}

// Day is the place of a bar.
type Day struct {
	Label   string // below it
	Group   string // below the label of the first day of several, such as the month
	Title   string // shown to whoever points at it
	IsToday bool
}

// Line is a level across the bars.
type Line struct {
	Name   string
	Kind   string  // LineCap or LinePace
	Value  float64 // at which it lies
	Beyond string  // what the legend adds when it lies far above all bars and is not drawn
}

// The kinds of lines: a cap, a pace that is advised, and what would follow at the pace of now.
const (
	LineCap   = "cap"
	LinePace  = "pace"
	LineAhead = "ahead"
)

// farAbove is how many times higher than the highest bar a line may lie: any higher, and the bars would be too low to compare.
const farAbove = 3

// total is the height of a bar.
func (b Bars) total(day int) (n int64) {
	for _, s := range b.Series {
		n += s.at(day)
	}
	return n
}

func (s Series) at(day int) int64 {
	if day >= len(s.Values) {
		return 0
	}
	return max(s.Values[day], 0)
}

func (b Bars) highest() (n int64) {
	for i := range b.Days {
		n = max(n, b.total(i))
	}
	return n
}

// isDrawn reports whether a line lies within reach of the bars.
func (b Bars) isDrawn(l Line) bool {
	highest := b.highest()
	return highest == 0 || l.Value <= farAbove*float64(highest)
}

func (b Bars) scale() Scale {
	largest := b.highest()
	for _, l := range b.Lines {
		if b.isDrawn(l) {
			largest = max(largest, int64(l.Value)+1)
		}
	}
	return NewScale(largest)
}

// SVG draws the figure.
func (b Bars) SVG() template.HTML {
	var d drawing
	scale, slot := b.scale(), 1/float64(max(len(b.Days), 1))
	d.openFigure(b.ID, b.Name, b.Summary)
	d.definePatterns(b.ID, len(b.Series))
	for i, day := range b.Days {
		if day.IsToday {
			d.empty("rect", "class", "today", "x", percent(float64(i)*slot), "y", "0", "width", percent(slot), "height", "100%")
		}
	}
	d.drawScale(scale, b.Number)
	b.drawSeries(&d, scale, slot)
	for _, l := range b.Lines {
		if b.isDrawn(l) {
			d.drawLevel(l.Kind, 1-scale.share(l.Value))
		}
	}
	d.labelDays(b.Days)
	for i, day := range b.Days {
		d.open("rect", "class", "hit", "x", percent(float64(i)*slot), "y", "0", "width", percent(slot), "height", "100%")
		d.text("title", day.Title)
		d.close("rect")
	}
	d.close("svg")
	return d.html()
}

// drawSeries draws the parts of all bars, series by series. A part that is not zero is always seen.
func (b Bars) drawSeries(d *drawing, scale Scale, slot float64) {
	const leastHeight, inset = .004, .12
	tops := make([]float64, len(b.Days)) // from the bottom
	for n, s := range b.Series {
		d.open("g", "fill", "url(#"+patternID(b.ID, n)+")")
		for i := range b.Days {
			v := s.at(i)
			if v == 0 {
				continue
			}
			height := max(scale.share(float64(v)), leastHeight)
			tops[i] = min(tops[i]+height, 1)
			d.empty("rect", "x", percent((float64(i)+inset)*slot), "y", percent(1-tops[i]), "width", percent((1-2*inset)*slot), "height", percent(height))
		}
		d.close("g")
	}
}

// openFigure begins a drawing with its name and summary, which are read in its place.
func (d *drawing) openFigure(id, name, summary string) {
	d.open("svg", "class", "chart", "role", "img", "aria-labelledby", id+"-n "+id+"-s", "width", "100%", "height", "256")
	d.text("title", name, "id", id+"-n")
	d.text("desc", summary, "id", id+"-s")
}

// drawScale draws the numbers of the axis with a line for each.
func (d *drawing) drawScale(s Scale, number func(int64) string) {
	for v := int64(0); ; v += s.Step {
		y := percent(1 - s.share(float64(v)))
		class := "rule"
		if v == 0 {
			class = "rule base"
		}
		d.empty("line", "class", class, "x1", "0", "x2", "100%", "y1", y, "y2", y)
		d.text("text", number(v), "class", "axis", "x", "0", "y", y, "dx", "-8", "dy", "4", "text-anchor", "end")
		if v >= s.Max-s.Step+1 {
			return
		}
	}
}

// drawLevel draws a line across the figure.
func (d *drawing) drawLevel(kind string, y float64) {
	d.empty("line", "class", "level-edge", "x1", "0", "x2", "100%", "y1", percent(y), "y2", percent(y))
	d.empty("line", "class", "level "+kind, "x1", "0", "x2", "100%", "y1", percent(y), "y2", percent(y))
}

// labelDays writes the labels below the bars: as many as there is room for, and fewer of them where the figure is narrow.
func (d *drawing) labelDays(days []Day) {
	const fitWide, fitNarrow = 32, 8
	wide, narrow := (len(days)-1)/fitWide+1, (len(days)-1)/fitNarrow+1
	today := slices.IndexFunc(days, func(day Day) bool { return day.IsToday })
	for i, day := range days {
		isNearToday := today >= 0 && i != today && max(i-today, today-i) < wide
		if i != today && (i%wide != 0 || isNearToday) {
			continue
		}
		class := "axis"
		if i == today {
			class += " now"
		}
		if i%narrow != 0 {
			class += " if-wide"
		}
		d.text("text", day.Label, "class", class, "x", percent((float64(i)+.5)/float64(len(days))), "y", "100%", "dy", "18", "text-anchor", "middle")
	}
	d.labelGroups(days)
}

// labelGroups writes the labels of groups, each where its first day is. One without room after the one before it is left out.
func (d *drawing) labelGroups(days []Day) {
	const roomWide, roomNarrow, nearEnd = .09, .3, .85
	lastWide, lastNarrow := -1.0, -1.0
	for i, day := range days {
		x := float64(i) / float64(len(days))
		if day.Group == "" || x-lastWide < roomWide {
			continue
		}
		class, anchor := "axis", "start"
		if lastWide = x; x-lastNarrow < roomNarrow {
			class += " if-wide"
		} else {
			lastNarrow = x
		}
		if x > nearEnd {
			anchor, x = "end", 1
		}
		d.text("text", day.Group, "class", class, "x", percent(x), "y", "100%", "dy", "36", "text-anchor", anchor)
	}
}

// patternID is the id of the pattern of a series.
func patternID(id string, series int) string { return id + "-p" + strconv.Itoa(series+1) }

// patternLines are what is drawn on the colour of each series, in a square of eight: nothing, lines of four directions, points, crosses.
var patternLines = [MaxSeries]string{
	"",
	"M-2 2l4-4M0 8l8-8M6 10l4-4",
	"M2 1v2M6 5v2",
	"M-2 6l4 4M0 0l8 8M6-2l4 4",
	"M0 2h8M0 6h8",
	"M0 0l8 8M0 8l8-8",
	"M2 0v8M6 0v8",
}

func (d *drawing) definePatterns(id string, series int) {
	d.open("defs")
	for n := range min(series, MaxSeries) {
		d.open("pattern", "id", patternID(id, n), "width", "8", "height", "8", "patternUnits", "userSpaceOnUse")
		d.empty("rect", "class", "s"+strconv.Itoa(n+1), "width", "8", "height", "8")
		if patternLines[n] != "" {
			d.empty("path", "class", "weave", "d", patternLines[n])
		}
		d.close("pattern")
	}
	d.close("defs")
}

// Legend lists what the colours and lines of the figure mean. values, if not nil, writes the total of a series behind its name.
func (b Bars) Legend(values func(int64) string) template.HTML {
	var d drawing
	d.open("ul", "class", "legend")
	for n, s := range b.Series {
		d.open("li")
		d.open("svg", "class", "swatch", "width", "16", "height", "16", "aria-hidden", "true")
		d.empty("rect", "width", "16", "height", "16", "rx", "3", "fill", "url(#"+patternID(b.ID, n)+")")
		d.close("svg")
		d.text("bdi", s.Name)
		if values != nil {
			d.text("b", values(s.Total()))
		}
		d.close("li")
	}
	for _, l := range b.Lines {
		note := ""
		if !b.isDrawn(l) {
			note = l.Beyond
		}
		d.writeKey(l.Kind, l.Name, note)
	}
	d.close("ul")
	return d.html()
}
