package chart

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// Bars is a figure of bars by day, stacked by series.
type Bars struct {
	ID          string // of the figure, unlike any other on the page: letters, digits and hyphens
	Title       string // what it shows
	Description string // what it says: the sum, the highest day
	Days        []Day
	Series      []Series // from the bottom to the top; see FoldSeries
	Others      string   // the name of all series after the sixth
	Lines       []Line
	Today       string             // the word at the day that IsToday
	Number      func(int64) string // writes a number of the axis
}

// Day is a day of the axis.
type Day struct {
	Short   string // on the axis: "21", "21 nov."
	Title   string // with its numbers, for whoever points at it: "21 novembre 2026 : 1 204 requêtes"
	IsToday bool
}

// Series is one part of each bar.
type Series struct {
	Name   string
	Values []int64 // by day; missing ones are 0
}

// Line is a horizontal line from a day to the last one.
type Line struct {
	Kind  LineKind
	Label string
	Value int64
	From  int // the index of the first day
}

// LineKind is what a line means.
type LineKind string

const (
	Cap  LineKind = "cap"  // the most that is allowed
	Pace LineKind = "pace" // what lasts to the end of the period
)

// MaxSeries is how many series have a pattern of their own.
const MaxSeries = 6

// FoldSeries returns at most MaxSeries series as they are, and the sum of the following ones as one more under the name
// others. The table beneath a figure uses it too.
func FoldSeries(all []Series, others string) []Series {
	if len(all) <= MaxSeries {
		return all
	}
	rest := Series{Name: others}
	for _, s := range all[MaxSeries:] {
		for i, v := range s.Values {
			if i == len(rest.Values) {
				rest.Values = append(rest.Values, 0)
			}
			rest.Values[i] += v
		}
	}
	return append(slices.Clone(all[:MaxSeries]), rest)
}

// The measures of a figure and of its plot, in pixels. The plot is plotWidth units wide, however wide its place is.
const (
	figureHeight = 240
	plotTop      = 22
	plotHeight   = 190
	plotBottom   = plotTop + plotHeight
	plotWidth    = 1000.0
)

// plot is a Bars that is being drawn.
type plot struct {
	Bars
	canvas
	scale scale
	slot  float64 // the width of a day
}

// HTML draws the figure, and a legend if it has lines or several series.
func (b Bars) HTML() template.HTML {
	b.Series = FoldSeries(b.Series, b.Others)
	p := &plot{Bars: b, slot: plotWidth / float64(max(len(b.Days), 1))}
	p.scale = newScale(p.highest())
	id := escape(b.ID)
	p.printf(`<svg class="chart" width="100%%" height="%d" role="img" aria-labelledby="%s-title" aria-describedby="%[2]s-text">`, figureHeight, id)
	p.printf(`<title id="%s-title">%s</title><desc id="%[1]s-text">%[3]s</desc>`, id, escape(b.Title), escape(b.Description))
	p.printf(`<g aria-hidden="true">`) // some readers would say each label and day otherwise, in an image too
	p.drawPatterns(id)
	p.drawGrid()
	p.printf(`<svg y="%d" width="100%%" height="%d" viewBox="0 0 %s %[2]d" preserveAspectRatio="none">`, plotTop, plotHeight, coordinate(plotWidth))
	p.drawBars(id)
	p.printf(`</svg>`)
	p.drawToday()
	p.drawLines()
	p.drawDays()
	p.printf(`</g></svg>`)
	p.drawLegend(id)
	return template.HTML(p.String())
}

// total is the height of a day's bar. Values below 0 count as 0.
func (p *plot) total(day int) (sum float64) {
	for _, s := range p.Series {
		sum += s.value(day)
	}
	return sum
}

func (s Series) value(day int) float64 {
	if day >= len(s.Values) {
		return 0
	}
	return float64(max(s.Values[day], 0))
}

// highest is the value that the axis must hold: the highest bar, or a line that is not too far above it.
func (p *plot) highest() int64 {
	bars, highest := 0.0, 0.0
	for day := range p.Days {
		bars = max(bars, p.total(day))
	}
	highest = bars
	for _, l := range p.Lines {
		if v := float64(l.Value); bars == 0 || v <= bars*highestLine {
			highest = max(highest, v)
		}
	}
	return int64(min(highest, float64(largest)))
}

// drawGrid draws the lines and the numbers of the axis. The numbers stand in the padding that the style sheet leaves.
func (p *plot) drawGrid() {
	for value := int64(0); ; value += p.scale.step {
		y := coordinate(plotBottom - p.scale.height(float64(value), plotHeight))
		p.printf(`<line class="chart-grid" x2="100%%" y1="%s" y2="%[1]s"/>`, y)
		p.printf(`<text class="chart-number" x="-8" y="%s" dy=".32em" text-anchor="end">%s</text>`, y, escape(p.number(value)))
		if value > p.scale.top-p.scale.step {
			return
		}
	}
}

func (p *plot) number(value int64) string {
	if p.Number == nil {
		return coordinate(float64(value))
	}
	return p.Number(value)
}

// drawBars draws one path for each series, and over each day an area that shows its title.
func (p *plot) drawBars(id string) {
	bottoms := make([]float64, len(p.Days)) // of the next part of each bar
	for i, s := range p.Series {
		var path strings.Builder
		for day := range p.Days {
			height := p.scale.height(s.value(day), plotHeight)
			if p.scale.height(p.total(day), plotHeight) < 1 && s.value(day) > 0 && bottoms[day] == 0 {
				height = 1 // a day with a value is visible
			}
			if height > 0 {
				path.WriteString(bar((float64(day)+0.5)*p.slot, plotHeight-bottoms[day], height))
				bottoms[day] += height
			}
		}
		p.drawSeries(i, id, fmt.Sprintf("%s-b%d", id, i+1), path.String(), p.slot*0.8)
	}
	p.printf(`<g class="chart-days" fill="none" pointer-events="all">`)
	for day, texts := range p.Days {
		p.printf(`<rect x="%s" width="%s" height="%d"><title>%s</title></rect>`, coordinate(float64(day)*p.slot), coordinate(p.slot), plotHeight, escape(texts.Title))
	}
	p.printf(`</g>`)
}

// drawSeries draws a path in the colour of a series, and its pattern upon it. The path gets an id, so that it is there once.
func (p *plot) drawSeries(i int, id, pathID, path string, width float64) {
	if path == "" {
		return
	}
	if len(p.Series) < 2 || patterns[i] == "" {
		p.printf(`<path class="chart-s%d" stroke-width="%s" d="%s"/>`, i+1, coordinate(width), path)
		return
	}
	p.printf(`<defs><path id="%s" stroke-width="%s" d="%s"/></defs>`, pathID, coordinate(width), path)
	p.printf(`<use class="chart-s%d" href="#%s"/><use stroke="url(#%s-p%[1]d)" href="#%[2]s"/>`, i+1, pathID, id)
}

// patterns are the patterns of the series in a tile of 8 units, by number. The first has none; the last is that of the others.
var patterns = [MaxSeries + 1]string{
	"",
	"M-2 2l4-4M0 8l8-8M6 10l4-4",
	"M1 2h2M5 6h2",
	"M0 1h8M0 5h8",
	"M-2 6l4 4M0 0l8 8M6-2l4 4",
	"M2 0v8M6 0v8",
	"M0 0l8 8M0 8l8-8",
}

// drawPatterns defines the patterns that the series need.
func (p *plot) drawPatterns(id string) {
	if len(p.Series) < 2 {
		return
	}
	p.printf(`<defs>`)
	for i := range p.Series {
		if patterns[i] != "" {
			p.printf(`<pattern id="%s-p%d" width="8" height="8" patternUnits="userSpaceOnUse"><path class="chart-pattern" d="%s"/></pattern>`, id, i+1, patterns[i])
		}
	}
	p.printf(`</defs>`)
}

// percent is a place on the axis of days, as a share of its width.
func (p *plot) percent(days float64) string {
	return coordinate(days*p.slot/plotWidth*100) + "%"
}

// anchor keeps a word at a day within the figure.
func (p *plot) anchor(day int) string {
	switch share := (float64(day) + 0.5) / float64(len(p.Days)); {
	case share < 0.2:
		return "start"
	case share > 0.8:
		return "end"
	}
	return "middle"
}

// drawToday marks the day that is today.
func (p *plot) drawToday() {
	for i, day := range p.Days {
		if day.IsToday {
			x := p.percent(float64(i) + 0.5)
			p.printf(`<line class="chart-today" x1="%s" x2="%[1]s" y1="%d" y2="%d"/>`, x, plotTop-6, plotBottom)
			p.printf(`<text class="chart-note" x="%s" y="%d" text-anchor="%s">%s</text>`, x, plotTop-10, p.anchor(i), escape(p.Today))
		}
	}
}

// drawLines draws the lines. Their labels are in the legend, where they cross no bar.
func (p *plot) drawLines() {
	for _, l := range p.Lines {
		y := plotBottom - p.scale.height(float64(l.Value), plotHeight)
		p.printf(`<line class="chart-line chart-%s" x1="%s" x2="100%%" y1="%s" y2="%[3]s"/>`, escape(string(l.Kind)), p.percent(float64(max(l.From, 0))), coordinate(y))
	}
}

// drawDays writes the labels of some days below the axis. The style sheet leaves every other one out on a phone.
func (p *plot) drawDays() {
	class, step := "chart-number", labelStep(len(p.Days))
	for i := 0; i < len(p.Days); i += step {
		p.printf(`<text class="%s" x="%s" y="%d" text-anchor="middle">%s</text>`, class, p.percent(float64(i)+0.5), plotBottom+18, escape(p.Days[i].Short))
		if class = "chart-number"; i/step%2 == 0 {
			class = "chart-number chart-wide"
		}
	}
}

// drawLegend names the lines and, if there are several, the series, each with its colour and pattern.
func (p *plot) drawLegend(id string) {
	if len(p.Series) < 2 && len(p.Lines) == 0 {
		return
	}
	p.printf(`<ul class="chart-legend">`)
	for i, s := range p.Series {
		if len(p.Series) > 1 {
			p.printf(`<li><svg width="16" height="16" aria-hidden="true">`)
			p.drawSeries(i, id, fmt.Sprintf("%s-k%d", id, i+1), "M8 0v16", 16)
			p.printf(`</svg> %s</li>`, escape(s.Name))
		}
	}
	for _, l := range p.Lines {
		p.printf(`<li><svg width="16" height="16" aria-hidden="true"><line class="chart-line chart-%s" x2="16" y1="8" y2="8"/></svg> %s</li>`, escape(string(l.Kind)), escape(l.Label))
	}
	p.printf(`</ul>`)
}
