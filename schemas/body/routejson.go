package body

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"
)

// Answers about routes are mostly positions: a way through a city has thousands. encoding/json writes each number as the shortest
// of all that read as the same, and reads once more what a MarshalJSON wrote; that took longer than finding the way. So these answers
// write themselves, in the form in which encoding/json would.

// AppendJSON appends the answer, as kit.MarshalJSON wants it.
func (r ComputedRoute) AppendJSON(text []byte) ([]byte, error) {
	w := beginObject(text)
	w.envelope(&r.Envelope)
	w.encoded("bounds", r.Bounds)
	w.path(&r.RoutePath)
	if len(r.Alternatives) > 0 {
		w.paths("alternatives", r.Alternatives)
	}
	w.numberUnlessZero("precision_polyline", r.PolylinePrecision)
	w.network(&r.RouteNetwork)
	return w.end()
}

// AppendJSON appends the answer, as kit.MarshalJSON wants it.
func (t Tour) AppendJSON(text []byte) ([]byte, error) {
	w := beginObject(text)
	w.envelope(&t.Envelope)
	w.encoded("order", t.Order)
	w.encoded("optimal", t.Optimal)
	w.encoded("bounds", t.Bounds)
	w.path(&t.RoutePath)
	w.numberUnlessZero("precision_polyline", t.PolylinePrecision)
	w.network(&t.RouteNetwork)
	return w.end()
}

// AppendJSON appends the answer, as kit.MarshalJSON wants it.
func (i Isochrone) AppendJSON(text []byte) ([]byte, error) {
	w := beginObject(text)
	w.envelope(&i.Envelope)
	w.encoded("origin", i.Origin)
	w.string("cost_type", i.CostType)
	w.areas("areas", i.Areas)
	w.network(&i.RouteNetwork)
	return w.end()
}

// MarshalJSON writes the text or the object.
func (l *Line) MarshalJSON() ([]byte, error) {
	w := objectWriter{}
	w.line(l)
	return w.text, w.err
}

// objectWriter appends objects to a text. The first error stays.
type objectWriter struct {
	text []byte
	err  error
}

func beginObject(text []byte) *objectWriter { return &objectWriter{text: append(text, '{')} }

// end closes the object that beginObject opened.
func (w *objectWriter) end() ([]byte, error) { return append(w.text, '}'), w.err }

// name begins a member. Only the first one of an object follows its brace.
func (w *objectWriter) name(name string) {
	if w.text[len(w.text)-1] != '{' {
		w.text = append(w.text, ',')
	}
	w.text = append(append(append(w.text, '"'), name...), '"', ':')
}

// comma separates the items of an array.
func (w *objectWriter) comma(item int) {
	if item > 0 {
		w.text = append(w.text, ',')
	}
}

func (w *objectWriter) number(name string, n int) {
	w.name(name)
	w.text = strconv.AppendInt(w.text, int64(n), 10)
}

func (w *objectWriter) numberUnlessZero(name string, n int) {
	if n != 0 {
		w.number(name, n)
	}
}

func (w *objectWriter) degrees(name string, x float64) {
	w.name(name)
	w.float(x)
}

func (w *objectWriter) string(name, text string) {
	w.name(name)
	w.quoted(text)
}

func (w *objectWriter) stringUnlessEmpty(name, text string) {
	if text != "" {
		w.string(name, text)
	}
}

// encoded appends a member by encoding/json.
func (w *objectWriter) encoded(name string, v any) {
	w.name(name)
	w.value(v)
}

// value appends a value by encoding/json, without escaped HTML characters.
func (w *objectWriter) value(v any) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil && w.err == nil {
		w.err = err
	}
	w.text = append(w.text, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
}

// quoted appends a text. One with characters that JSON or JavaScript wants escaped is left to encoding/json.
func (w *objectWriter) quoted(text string) {
	if !isPlain(text) {
		w.value(text)
		return
	}
	w.text = append(append(append(w.text, '"'), text...), '"')
}

// isPlain reports whether no character of a text is escaped.
func isPlain(text string) bool {
	for i := range len(text) {
		// 0xE2 begins the separators of lines and paragraphs, among others.
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c == 0xE2 {
			return false
		}
	}
	return utf8.ValidString(text)
}

// microDegrees is how many units of the answers' degrees are a degree: they have six decimals.
const microDegrees = 1_000_000

// float appends a number. One of at most six decimals, as degrees have, is written from the whole number of its last decimal; its
// text is then the shortest, because it has no more digits than a float64 holds.
func (w *objectWriter) float(x float64) {
	const most = 1e9 // units and decimals of such a number are far from the limit of exact whole numbers
	units := math.Round(x * microDegrees)
	if !(math.Abs(units) < most) || units/microDegrees != x || units == 0 && math.Signbit(x) {
		w.value(x)
		return
	}
	n := int64(units)
	if n < 0 {
		w.text, n = append(w.text, '-'), -n
	}
	w.text = strconv.AppendInt(w.text, n/microDegrees, 10)
	decimals := n % microDegrees
	if decimals == 0 {
		return
	}
	w.text = append(w.text, '.')
	for unit := int64(microDegrees / 10); decimals > 0; unit /= 10 {
		w.text = append(w.text, byte('0'+decimals/unit))
		decimals %= unit
	}
}

func (w *objectWriter) envelope(e *Envelope) {
	w.string("status", e.Status)
	w.string("message", e.Message)
}

func (w *objectWriter) network(n *RouteNetwork) {
	w.string("mode", n.Mode)
	w.stringUnlessEmpty("reseau_routier", n.RoadNetwork)
	w.stringUnlessEmpty("attribution", n.Attribution)
}

// path appends the members of a way.
func (w *objectWriter) path(p *RoutePath) {
	w.number("distance", p.Distance)
	w.number("duration", p.Duration)
	if len(p.BBox) > 0 {
		w.name("bbox")
		w.position(p.BBox)
	}
	w.geometry(p.Geometry)
	w.legs(p.Legs)
	if len(p.Avoided) > 0 {
		w.encoded("evitements", p.Avoided)
	}
	w.numberUnlessZero("peages_m", p.TollDistance)
}

func (w *objectWriter) paths(name string, all []RoutePath) {
	w.name(name)
	w.text = append(w.text, '[')
	for i := range all {
		w.comma(i)
		w.text = append(w.text, '{')
		w.path(&all[i])
		w.text = append(w.text, '}')
	}
	w.text = append(w.text, ']')
}

func (w *objectWriter) legs(all []Leg) {
	w.name("legs")
	if all == nil {
		w.text = append(w.text, "null"...)
		return
	}
	w.text = append(w.text, '[')
	for i := range all {
		w.comma(i)
		w.text = append(w.text, '{')
		w.number("distance", all[i].Distance)
		w.number("duration", all[i].Duration)
		if len(all[i].Steps) > 0 {
			w.steps(all[i].Steps)
		}
		w.text = append(w.text, '}')
	}
	w.text = append(w.text, ']')
}

func (w *objectWriter) steps(all []Step) {
	w.name("steps")
	w.text = append(w.text, '[')
	for i := range all {
		w.comma(i)
		w.step(&all[i])
	}
	w.text = append(w.text, ']')
}

func (w *objectWriter) step(s *Step) {
	w.text = append(w.text, '{')
	w.number("distance", s.Distance)
	w.number("duration", s.Duration)
	w.stringUnlessEmpty("voie", s.Street)
	w.stringUnlessEmpty("ref", s.Ref)
	w.stringUnlessEmpty("directions", s.Directions)
	w.name("manoeuvre")
	w.text = append(w.text, '{')
	w.string("type", s.Maneuver.Type)
	w.stringUnlessEmpty("sens", s.Maneuver.Modifier)
	w.numberUnlessZero("sortie", s.Maneuver.Exit)
	w.degrees("lon", s.Maneuver.Lon)
	w.degrees("lat", s.Maneuver.Lat)
	w.text = append(w.text, '}')
	w.stringUnlessEmpty("texte", s.Text)
	w.geometry(s.Geometry)
	w.text = append(w.text, '}')
}

// geometry appends the member of a line, where there is one.
func (w *objectWriter) geometry(l *Line) {
	if l != nil {
		w.name("geometry")
		w.line(l)
	}
}

// line appends an encoded polyline as a text, and any other line as an object.
func (w *objectWriter) line(l *Line) {
	if l.polyline != "" {
		w.quoted(l.polyline)
		return
	}
	w.text = append(w.text, '{')
	w.string("type", l.Type)
	w.name("coordinates")
	w.positions(l.Coordinates)
	w.text = append(w.text, '}')
}

func (w *objectWriter) positions(all [][]float64) {
	if all == nil {
		w.text = append(w.text, "null"...)
		return
	}
	w.text = append(w.text, '[')
	for i, p := range all {
		w.comma(i)
		w.position(p)
	}
	w.text = append(w.text, ']')
}

func (w *objectWriter) position(p []float64) {
	if p == nil {
		w.text = append(w.text, "null"...)
		return
	}
	w.text = append(w.text, '[')
	for i, x := range p {
		w.comma(i)
		w.float(x)
	}
	w.text = append(w.text, ']')
}

func (w *objectWriter) areas(name string, all []Area) {
	w.name(name)
	if all == nil {
		w.text = append(w.text, "null"...)
		return
	}
	w.text = append(w.text, '[')
	for i := range all {
		w.comma(i)
		w.text = append(w.text, '{')
		w.number("valeur", all[i].Value)
		if all[i].Geometry != nil {
			w.name("geometry")
			w.multiPolygon(all[i].Geometry)
		}
		if all[i].Sites != nil {
			w.encoded("sites", all[i].Sites)
		}
		w.text = append(w.text, '}')
	}
	w.text = append(w.text, ']')
}

func (w *objectWriter) multiPolygon(m *MultiPolygon) {
	w.text = append(w.text, '{')
	w.string("type", m.Type)
	w.name("coordinates")
	if m.Coordinates == nil {
		w.text = append(w.text, "null}"...)
		return
	}
	w.text = append(w.text, '[')
	for i, polygon := range m.Coordinates {
		w.comma(i)
		if polygon == nil {
			w.text = append(w.text, "null"...)
			continue
		}
		w.text = append(w.text, '[')
		for k, ring := range polygon {
			w.comma(k)
			w.positions(ring)
		}
		w.text = append(w.text, ']')
	}
	w.text = append(w.text, "]}"...)
}
