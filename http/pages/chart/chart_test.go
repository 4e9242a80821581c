package chart

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestAnAxisHasRoundNumbersThatHoldTheHighest(t *testing.T) {
	t.Parallel()
	for highest, want := range map[int64]scale{
		-3: {1, 1}, 0: {1, 1}, 1: {1, 1}, 3: {1, 3}, 4: {1, 4}, 5: {2, 6}, 9: {5, 10}, 20: {5, 20}, 21: {10, 30}, 61: {20, 80}, 4_812: {2_000, 6_000},
		100_000: {50_000, 100_000}, math.MaxInt64: {500_000_000_000_000_000, 1_000_000_000_000_000_000},
	} {
		if got := newScale(highest); got != want {
			t.Errorf("%d: got %v, want %v", highest, got, want)
		}
	}
}

func TestAPhoneHasRoomForTheLabelsOfDays(t *testing.T) {
	t.Parallel()
	for days := range 400 {
		step := labelStep(days)
		if labels := (days + step - 1) / step; labels > labelsWanted {
			t.Errorf("%d days: %d labels", days, labels)
		}
	}
	if labelStep(31) != 5 || labelStep(7) != 1 || labelStep(366) != 61 {
		t.Errorf("steps %d, %d, %d", labelStep(31), labelStep(7), labelStep(366))
	}
}

func TestSeriesAfterTheSixthAreOne(t *testing.T) {
	t.Parallel()
	var all []Series
	for i := range 9 {
		all = append(all, Series{strconv.Itoa(i), make([]int64, i+1)})
		all[i].Values[0] = int64(i)
	}
	if got := FoldSeries(all[:6], "others"); len(got) != 6 || got[5].Name != "5" {
		t.Errorf("six series became %v", got)
	}
	all[7].Values[7] = 4
	got := FoldSeries(all, "others")
	if len(got) != 7 || got[5].Name != "5" || got[6].Name != "others" || !slices.Equal(got[6].Values, []int64{6 + 7 + 8, 0, 0, 0, 0, 0, 0, 4, 0}) {
		t.Errorf("nine series became %v", got)
	}
	if all[6].Name != "6" {
		t.Error("the caller's series are changed")
	}
}

// newBars is a figure of some days with series of constant values.
func newBars(days int, values ...int64) Bars {
	b := Bars{
		ID: "use", Title: "Requests", Description: "Per day", Others: "others", Today: "today",
		Number: func(n int64) string { return fmt.Sprintf("%d!", n) },
	}
	for day := range days {
		b.Days = append(b.Days, Day{Short: strconv.Itoa(day + 1), Title: fmt.Sprintf("Day %d", day+1)})
	}
	for i, v := range values {
		b.Series = append(b.Series, Series{fmt.Sprintf("Key %d", i), slices.Repeat([]int64{v}, days)})
	}
	return b
}

var barPattern = regexp.MustCompile(`M([0-9.]+) ([0-9.]+)v([0-9.]+)`)

// drawnBars are the tops and heights of a drawn series, by number from 1.
func drawnBars(t *testing.T, drawn string, series int) (bars [][2]float64) {
	t.Helper()
	path := regexp.MustCompile(fmt.Sprintf(`<path (?:id="use-b%d"|class="chart-s%[1]d") stroke-width="[0-9.]+" d="([^"]+)"`, series)).FindStringSubmatch(drawn)
	if path == nil {
		return nil
	}
	for _, m := range barPattern.FindAllStringSubmatch(path[1], -1) {
		top, err := strconv.ParseFloat(m[2], 64)
		height, err2 := strconv.ParseFloat(m[3], 64)
		if err != nil || err2 != nil {
			t.Fatal(m)
		}
		bars = append(bars, [2]float64{top, height})
	}
	return bars
}

func TestBarsAreAsHighAsTheirValuesAndStandOnEachOther(t *testing.T) {
	t.Parallel()
	b := newBars(3, 2, 1)
	b.Series[0].Values[1] = 0
	b.Series[1].Values[2] = -5
	drawn := string(b.HTML())
	unit := float64(plotHeight) / 3 // the axis ends at 3
	for series, want := range map[int][][2]float64{
		1: {{plotHeight - 2*unit, 2 * unit}, {plotHeight - 2*unit, 2 * unit}},
		2: {{0, unit}, {plotHeight - unit, unit}},
	} {
		got := drawnBars(t, drawn, series)
		if len(got) != len(want) {
			t.Fatalf("series %d: got %v, want %v", series, got, want)
		}
		for i := range want {
			if math.Abs(got[i][0]-want[i][0]) > 0.02 || math.Abs(got[i][1]-want[i][1]) > 0.02 {
				t.Errorf("series %d: got %v, want %v", series, got, want)
			}
		}
	}
	for _, want := range []string{"<title>Day 3</title>", ">0!</text>", ">3!</text>", "Key 1</li>", `stroke="url(#use-p2)"`, `aria-labelledby="use-title"`} {
		if !strings.Contains(drawn, want) {
			t.Errorf("%s is not in %s", want, drawn)
		}
	}
}

func TestADayWithAValueIsVisible(t *testing.T) {
	t.Parallel()
	b := newBars(2, 1)
	b.Series[0].Values[1] = 1_000_000
	if got := drawnBars(t, string(b.HTML()), 1); len(got) != 2 || got[0] != [2]float64{plotHeight - 1, 1} {
		t.Errorf("bars %v, want a first one of height 1", got)
	}
	if drawn := string(b.HTML()); strings.Contains(drawn, "chart-legend") || strings.Contains(drawn, "<pattern") {
		t.Error("a single series has a legend or a pattern")
	}
}

func TestALineIsInTheScaleUnlessItIsFarAboveTheBars(t *testing.T) {
	t.Parallel()
	for value, want := range map[int64]string{
		5:   fmt.Sprintf(`x1="50%%" x2="100%%" y1="%d"`, plotTop+plotHeight/2), // the axis ends at 10
		25:  fmt.Sprintf(`y1="%s"`, coordinate(plotBottom-plotHeight*25.0/30)),
		500: fmt.Sprintf(`y1="%d"`, plotTop), // at the top of an axis that ends at 10
	} {
		b := newBars(4, 10)
		b.Lines = []Line{{Kind: Cap, Label: "cap of the key", Value: value, From: 2}}
		if drawn := string(b.HTML()); !strings.Contains(drawn, `class="chart-line chart-cap" x1="50%"`) || !strings.Contains(drawn, want) || !strings.Contains(drawn, "cap of the key</li>") {
			t.Errorf("a line at %d is not %s: %s", value, want, drawn)
		}
	}
}

func TestTodayIsMarked(t *testing.T) {
	t.Parallel()
	b := newBars(4, 10)
	if strings.Contains(string(b.HTML()), "chart-today") {
		t.Error("a day is today though none is")
	}
	b.Days[3].IsToday = true
	if drawn := string(b.HTML()); !strings.Contains(drawn, `class="chart-today" x1="87.5%"`) || !strings.Contains(drawn, ">today</text>") {
		t.Errorf("the last day is not marked: %s", drawn)
	}
}

func TestAFigureOfAYearIsSmall(t *testing.T) {
	t.Parallel()
	if size := len(newBars(366, 1, 2, 3, 4, 5, 6, 7, 8).HTML()); size > 80_000 {
		t.Errorf("a year of seven series takes %d bytes", size)
	}
	if size := len(newBars(31, 1, 2, 3).HTML()); size > 8_000 {
		t.Errorf("a month of three series takes %d bytes", size)
	}
}

func TestASparkShowsEachDay(t *testing.T) {
	t.Parallel()
	drawn := string(Spark{"30 days", []int64{0, 1, 0, 1_000}}.HTML())
	if bars := barPattern.FindAllString(drawn, -1); !slices.Equal(bars, []string{"M4.5 22v2", "M10.5 0v24"}) {
		t.Errorf("bars %q in %s", bars, drawn)
	}
	if !strings.Contains(drawn, `role="img"><title>30 days</title>`) {
		t.Errorf("no name: %s", drawn)
	}
}

// checkMarkup checks that a figure is well-formed, has no element or attribute that a strict policy forbids, and shows a text.
func checkMarkup(t *testing.T, drawn, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader("<div>" + drawn + "</div>"))
	allowed := strings.Fields("div svg title desc defs pattern path use g rect line text ul li")
	hasText := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v in %s", err, drawn)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if !slices.Contains(allowed, token.Name.Local) {
				t.Fatalf("an element %s", token.Name.Local)
			}
			for _, a := range token.Attr {
				if a.Name.Local == "style" || strings.HasPrefix(a.Name.Local, "on") {
					t.Fatalf("an attribute %s", a.Name.Local)
				}
			}
		case xml.CharData:
			hasText = hasText || strings.Contains(string(token), text)
		}
	}
	if !hasText {
		t.Fatalf("%q is not in %s", text, drawn)
	}
}

var hostileTexts = []string{
	"", `"><script>alert(1)</script>`, `</title></svg><img src=x onerror=alert(1)>`, "a & b < c > d", `' onload='alert(1)`, "\x00\x1b\xff\uFFFE", "]]>", "&#0;", "<!--", "é\u202f\u2028\n",
}

func TestFiguresOfAnySizeAreWellFormed(t *testing.T) {
	t.Parallel()
	for _, days := range []int{0, 1, 2, 31, 366} {
		for _, series := range [][]int64{nil, {0}, {1, 2}, {math.MaxInt64, math.MaxInt64, math.MinInt64}, {1, 2, 3, 4, 5, 6, 7, 8, 9}} {
			checkMarkup(t, string(newBars(days, series...).HTML()), "Requests")
		}
	}
	checkMarkup(t, string(Spark{Title: "none"}.HTML()), "none")
}

func FuzzHostileTextsAreText(f *testing.F) {
	for _, text := range hostileTexts {
		f.Add(text, int64(12), uint8(31))
	}
	f.Fuzz(func(t *testing.T, text string, value int64, days uint8) {
		text = "label" + text
		b := newBars(int(days), value, 1)
		b.ID, b.Title, b.Description, b.Today = text, text, text, text
		b.Number = func(int64) string { return text }
		b.Series[0].Name = text
		b.Lines = []Line{{LineKind(text), text, value, int(value % 400)}}
		for i := range b.Days {
			b.Days[i] = Day{text, text, i == 3}
		}
		checkMarkup(t, string(b.HTML()), "label")
		checkMarkup(t, string(Spark{text, []int64{value}}.HTML()), "label")
	})
}
