package chart_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"lieudit/http/pages/chart"
)

// TestScaleHasRoundNumbers: a step is 1, 2 or 5 times a power of ten, the largest value fits, and the bars use most of the height.
func TestScaleHasRoundNumbers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ largest, max, step int64 }{
		{0, 2, 1}, {1, 2, 1}, {2, 2, 1}, {3, 3, 1}, {5, 5, 1}, {6, 6, 2}, {10, 10, 2}, {11, 15, 5}, {25, 25, 5}, {26, 30, 10},
		{5230, 6000, 2000}, {99999, 100000, 20000}, {100000, 100000, 20000}, {100001, 150000, 50000},
	} {
		if got := chart.NewScale(tt.largest); got.Max != tt.max || got.Step != tt.step {
			t.Errorf("%d: to %d by %d, want to %d by %d", tt.largest, got.Max, got.Step, tt.max, tt.step)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		largest := int64(math.Exp(random.Float64() * 40))
		s := chart.NewScale(largest)
		digits := strings.TrimRight(strconv.FormatInt(s.Step, 10), "0")
		if steps := s.Max / s.Step; digits != "1" && digits != "2" && digits != "5" || steps < 2 || steps > 5 || s.Max%s.Step != 0 || largest > s.Max || largest > 10 && largest*2 < s.Max {
			t.Fatalf("%d: %+v", largest, s)
		}
	}
	if s := chart.NewScale(math.MaxInt64); s.Max <= 0 || s.Step <= 0 {
		t.Errorf("the largest number: %+v", s)
	}
}

// TestMergeKeepsEveryRequest: whatever series there are, the sums of the bars stay, and at most seven series are told apart.
func TestMergeKeepsEveryRequest(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for n := range 30 {
		var all []chart.Series
		want := make([]int64, 10)
		for i := range n {
			s := chart.Series{Name: fmt.Sprint("s", i), Values: make([]int64, 10)}
			for d := range s.Values {
				s.Values[d] = random.Int64N(50)
				want[d] += s.Values[d]
			}
			all = append(all, s)
		}
		merged := chart.Merge(all, "others")
		if len(merged) != min(n, chart.MaxSeries) {
			t.Errorf("%d series become %d", n, len(merged))
		}
		got := make([]int64, 10)
		for i, s := range merged {
			if i > 0 && s.Name != "others" && s.Total() > merged[i-1].Total() {
				t.Errorf("%d series: %s is larger than the one before it", n, s.Name)
			}
			for d, v := range s.Values {
				got[d] += v
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%d series: sums %v, want %v", n, got, want)
		}
	}
}

// element is an element of a drawing, with its depth.
type element struct {
	name       string
	attributes map[string]string
	text       string
}

// parse reads a drawing as XML; it fails if it is not well-formed, or has an attribute style.
func parse(t testing.TB, svg string) (all []element) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	var open []int
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{token.Name.Local, map[string]string{}, ""}
			for _, a := range token.Attr {
				if _, twice := e.attributes[a.Name.Local]; twice || a.Name.Local == "style" || strings.HasPrefix(a.Name.Local, "on") {
					t.Fatalf("attribute %s in %s", a.Name.Local, svg)
				}
				e.attributes[a.Name.Local] = a.Value
			}
			open, all = append(open, len(all)), append(all, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				all[open[len(open)-1]].text += string(token)
			}
		}
	}
}

func percent(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestBarsAreAsHighAsTheirValues: for 1 to 366 days and 0 to 7 series, each bar is as high as its sum is on the scale, its parts
// do not overlap, and all stays within the drawing.
func TestBarsAreAsHighAsTheirValues(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	for _, days := range []int{1, 2, 28, 31, 90, 366} {
		for series := range chart.MaxSeries + 1 {
			b := randomBars(random, days, series)
			heights := map[string]float64{}
			for _, e := range parse(t, string(b.SVG())) {
				if e.name != "rect" || e.attributes["class"] != "" {
					continue
				}
				x, y, height := e.attributes["x"], percent(t, e.attributes["y"]), percent(t, e.attributes["height"])
				heights[x] += height
				if got := 100 - y; got > 100.001 || math.Abs(got-heights[x]) > .1 {
					t.Fatalf("%d days, %d series: a part at %s ends at %v, and the parts so far are %v high", days, series, x, got, heights[x])
				}
			}
			largest := int64(0)
			for d := range days {
				largest = max(largest, sumOf(b, d))
			}
			scale := chart.NewScale(largest)
			for d := range days {
				x := strconv.FormatFloat(math.Round((float64(d)+.12)/float64(days)*1e4)/1e2, 'f', -1, 64) + "%"
				want := float64(sumOf(b, d)) / float64(scale.Max) * 100
				if got := heights[x]; math.Abs(got-want) > .4*float64(series)+.1 {
					t.Errorf("%d days, %d series, day %d: %v high, want %v", days, series, d, got, want)
				}
			}
		}
	}
}

func sumOf(b chart.Bars, day int) (n int64) {
	for _, s := range b.Series {
		n += s.Values[day]
	}
	return n
}

func randomBars(random *rand.Rand, days, series int) chart.Bars {
	b := chart.Bars{ID: "c", Name: "Usage", Summary: "Summary", Number: func(n int64) string { return strconv.FormatInt(n, 10) }}
	for d := range days {
		b.Days = append(b.Days, chart.Day{Label: strconv.Itoa(d%31 + 1), Title: fmt.Sprint("day ", d), IsToday: d == days-1})
	}
	for i := range series {
		s := chart.Series{Name: fmt.Sprint("key ", i), Values: make([]int64, days)}
		for d := range s.Values {
			s.Values[d] = random.Int64N(3) * random.Int64N(2000)
		}
		b.Series = append(b.Series, s)
	}
	return b
}

// TestLinesFarAboveAreOnlyInTheLegend: a line within reach of the bars widens the axis; one far above would flatten them.
func TestLinesFarAboveAreOnlyInTheLegend(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		highest int64
		value   float64
		isDrawn bool
	}{{100, 50, true}, {100, 100, true}, {100, 299, true}, {100, 301, false}, {100, 1e12, false}, {0, 1e6, true}} {
		b := chart.Bars{ID: "c", Days: make([]chart.Day, 3), Series: []chart.Series{{Name: "a", Values: []int64{0, tt.highest, 0}}}, Number: func(int64) string { return "" },
			Lines: []chart.Line{{Name: "the cap", Kind: chart.LineCap, Value: tt.value, Beyond: "(far above)"}}}
		drawn := 0
		for _, e := range parse(t, string(b.SVG())) {
			if e.attributes["class"] == "level cap" {
				drawn++
				if y := percent(t, e.attributes["y1"]); y < 0 || y > 100 {
					t.Errorf("%+v: the line is at %v", tt, y)
				}
			}
		}
		legend := string(b.Legend(nil))
		if drawn != map[bool]int{true: 1, false: 0}[tt.isDrawn] || strings.Contains(legend, "(far above)") == tt.isDrawn || !strings.Contains(legend, "the cap") {
			t.Errorf("%+v: drawn %d times, legend %s", tt, drawn, legend)
		}
	}
}

// TestFiguresHaveNames: every figure is one picture with a name and a summary that exist.
func TestFiguresHaveNames(t *testing.T) {
	t.Parallel()
	c := chart.Cumulative{ID: "k", Name: "Sum", Summary: "What it comes to", Days: make([]chart.Day, 30), Sums: []int64{1, 4, 9}, Elapsed: 2.5, Cap: 20, Pace: 4, Number: func(n int64) string { return fmt.Sprint(n) }}
	for _, svg := range []string{string(randomBars(rand.New(rand.NewPCG(7, 8)), 31, 7).SVG()), string(c.SVG())} {
		all := parse(t, svg)
		ids := map[string]string{}
		for _, e := range all {
			if id := e.attributes["id"]; id != "" {
				if _, twice := ids[id]; twice {
					t.Errorf("two elements have the id %s", id)
				}
				ids[id] = e.text
			}
		}
		if all[0].attributes["role"] != "img" {
			t.Errorf("role %q", all[0].attributes["role"])
		}
		for id := range strings.FieldsSeq(all[0].attributes["aria-labelledby"]) {
			if ids[id] == "" {
				t.Errorf("nothing is called %s", id)
			}
		}
	}
}

// TestCumulativeStaysInTheDrawing: the curve begins at nothing and ends at today; the line ahead ends with the period or at the top.
func TestCumulativeStaysInTheDrawing(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(9, 10))
	for range 500 {
		days, begun := 1+random.IntN(366), 0
		begun = 1 + random.IntN(days)
		c := chart.Cumulative{ID: "k", Days: make([]chart.Day, days), Elapsed: float64(begun) - random.Float64(), Cap: random.Int64N(5000), Pace: random.Float64() * 500, Number: func(int64) string { return "" }}
		sum := int64(0)
		for range begun {
			sum += random.Int64N(200)
			c.Sums = append(c.Sums, sum)
		}
		for _, e := range parse(t, string(c.SVG())) {
			if e.attributes["vector-effect"] == "" {
				continue
			}
			numbers := []string{e.attributes["x2"], e.attributes["y2"]}
			if e.name == "path" {
				numbers = strings.FieldsFunc(e.attributes["d"], func(r rune) bool { return r == 'M' || r == 'L' || r == 'Z' || r == ' ' })
			}
			for _, text := range numbers {
				if n := percent(t, text); n < 0 || n > 1000 {
					t.Fatalf("%s has %v: %+v", e.name, n, c)
				}
			}
		}
	}
}

// TestLabelsHaveRoom: of 1 to 366 days no more are labelled than fit, today always is, and no label is next to today's.
func TestLabelsHaveRoom(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(11, 12))
	for days := 1; days <= 366; days++ {
		b := randomBars(random, days, 1)
		today := random.IntN(days)
		for d := range b.Days {
			b.Days[d] = chart.Day{Label: strconv.Itoa(d), Title: "t", IsToday: d == today, Group: map[bool]string{true: "month"}[d%30 == 17]}
		}
		var wide, narrow, groups []float64
		for _, e := range parse(t, string(b.SVG())) {
			switch class := e.attributes["class"]; {
			case e.name != "text" || e.attributes["dx"] != "":
			case e.text == "month":
				groups = append(groups, percent(t, e.attributes["x"]))
			default:
				wide = append(wide, percent(t, e.attributes["x"]))
				if !strings.Contains(class, "if-wide") {
					narrow = append(narrow, wide[len(wide)-1])
				}
				if strings.Contains(class, "now") != (e.text == strconv.Itoa(today)) {
					t.Errorf("%d days: %s has class %q, today is %d", days, e.text, class, today)
				}
			}
		}
		if len(wide) > 32 || len(narrow) > 9 || len(wide) == 0 {
			t.Errorf("%d days have %d labels, %d of them where it is narrow", days, len(wide), len(narrow))
		}
		for _, all := range [][]float64{wide, groups} {
			for i := 1; i < len(all); i++ {
				if all[i]-all[i-1] < 3 && all[i] < 99 {
					t.Errorf("%d days: labels at %v and %v", days, all[i-1], all[i])
				}
			}
		}
	}
}

// TestSparkline draws a bar for each value, and a mark for none.
func TestSparkline(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		values []int64
		want   string
	}{
		{nil, ""}, {[]int64{0}, "0:1"}, {[]int64{0, 0, 7}, "0:1 0:1 7:24"}, {[]int64{1, 1000}, "1:2 1000:24"}, {[]int64{50, 100}, "50:12 100:24"},
	} {
		var got []string
		for _, e := range parse(t, string(chart.Sparkline("30 days", tt.values))) {
			if e.name == "rect" {
				got = append(got, fmt.Sprint(tt.values[len(got)], ":", e.attributes["height"]))
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%v: %v, want %s", tt.values, got, tt.want)
		}
	}
}

// FuzzFiguresAreWellFormed: whatever the texts are, a figure is well-formed, and no text becomes markup.
func FuzzFiguresAreWellFormed(f *testing.F) {
	for _, text := range []string{"", `"><script>alert(1)</script>`, "' onload=x y='", "\x00\x1b\ufffe\xff", "]]>&lt;&#x26;", "שלום\u202e", strings.Repeat("x", 200)} {
		f.Add(text, int64(3), uint8(2))
	}
	f.Fuzz(func(t *testing.T, text string, value int64, days uint8) {
		b := chart.Bars{ID: "c", Name: text, Summary: text, Number: func(int64) string { return text }, Lines: []chart.Line{{Name: text, Kind: chart.LinePace, Value: float64(value), Beyond: text}}}
		for range days {
			b.Days = append(b.Days, chart.Day{Label: text, Group: text, Title: text})
		}
		b.Series = []chart.Series{{Name: text, Values: []int64{value, 1}}, {Name: text, Values: []int64{value}}}
		c := chart.Cumulative{ID: "k", Name: text, Summary: text, Days: b.Days, Sums: []int64{value, value}, Elapsed: 1, Cap: value, Pace: 1, Number: b.Number}
		for _, svg := range []string{string(b.SVG()), string(b.Legend(b.Number)), string(c.SVG()), string(chart.Sparkline(text, []int64{value, 0, 2}))} {
			for _, e := range parse(t, svg) {
				if e.name == "script" {
					t.Fatalf("a text became an element: %s", svg)
				}
			}
		}
	})
}
