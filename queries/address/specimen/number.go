package specimen

import (
	"bufio"
	"math"
	"strconv"
)

// number is a house number: its place along the street in metres, and from its middle.
type number struct {
	value       int
	rep         string
	along, side float64
}

// longest is the highest number of a street.
const longest = 9000

// numbers writes a street's house numbers, at most so many, and says how many.
func (p *place) numbers(out *bufio.Writer, w *way, most int) int {
	want := min(most, 1+int(p.rand.ExpFloat64()*15))
	metric := p.rural && p.chance(0.35)
	written := 0
	for n := (number{}); written < want && n.value < longest; {
		p.next(&n, metric)
		for _, rep := range p.reps() {
			if written == want {
				break
			}
			n.rep = rep
			p.row(out, w, n)
			written++
		}
	}
	return written
}

// next goes on to the next number: odd and even on their sides, some left out; or the metres from the street's start.
func (p *place) next(n *number, metric bool) {
	step := 1
	if metric {
		step = 5 + p.rand.IntN(60)
	} else if p.chance(0.12) {
		step += 2 * (1 + p.rand.IntN(2))
	}
	n.value += step
	n.along = float64(n.value) * 6
	if metric {
		n.along = float64(n.value)
	}
	n.side = 8 + p.rand.Float64()*12
	if n.value%2 == 0 {
		n.side = -n.side
	}
}

// runs are the repetition indexes one number may have; most have none.
var runs = [...][]string{{"", "bis"}, {"", "bis"}, {"", "bis"}, {"", "bis", "ter"}, {"", "bis", "ter", "quater"}, {"", "a"}, {"", "a", "b"},
	{"a", "b", "c", "d"}}

func (p *place) reps() []string {
	if p.chance(0.07) {
		return runs[p.rand.IntN(len(runs))]
	}
	return runs[0][:1]
}

const degree = 111_320 // metres of latitude

// row appends one line.
func (p *place) row(out *bufio.Writer, w *way, n number) {
	b := append(p.buf[:0], w.id...)
	if w.locality {
		b = append(b, ";;99999;"...)
	} else {
		b = appendNumber(b, n)
	}
	b = append(b, w.head...)
	east, north := w.dx*n.along-w.dy*n.side, w.dy*n.along+w.dx*n.side
	if w.mainland {
		b = append(appendFixed(b, w.x+east, 2), ';')
		b = append(appendFixed(b, w.y+north, 2), ';')
	} else {
		b = append(b, ";;"...)
	}
	lon := between(w.lon+east/(degree*math.Cos(w.lat*math.Pi/180)), p.Bounds.West, p.Bounds.East)
	lat := between(w.lat+north/degree, p.Bounds.South, p.Bounds.North)
	b = append(appendFixed(b, lon, 6), ';')
	b = append(appendFixed(b, lat, 6), ';')
	b = append(b, p.position(w.locality)...)
	b = append(b, w.tail...)
	b = p.appendProof(b)
	p.buf = b
	out.Write(b)
}

// appendNumber appends the end of the id, the empty former id, number and repetition index.
func appendNumber(b []byte, n number) []byte {
	b = append(b, '_')
	for limit := 10000; limit > 1 && n.value < limit; limit /= 10 {
		b = append(b, '0')
	}
	b = strconv.AppendInt(b, int64(n.value), 10)
	if n.rep != "" {
		b = append(append(b, '_'), n.rep...)
	}
	b = append(b, ";;"...)
	b = append(strconv.AppendInt(b, int64(n.value), 10), ';')
	return append(b, n.rep...)
}

// position is what the coordinates are those of.
func (p *place) position(locality bool) string {
	if locality {
		return "segment"
	}
	switch n := p.rand.IntN(100); {
	case n < 70:
		return "entrée"
	case n < 85:
		return "parcelle"
	case n < 93:
		return "bâtiment"
	case n < 97:
		return "délivrance postale"
	}
	return "segment"
}

// appendProof appends certification and cadastral parcels.
func (p *place) appendProof(b []byte) []byte {
	n := p.rand.Uint32()
	b = append(b, "01"[min(n%10/4, 1)], ';')
	parcels := [...]int{0, 0, 1, 1, 1, 1, 1, 1, 1, 2}[n/16%10]
	for i := range parcels {
		if i > 0 {
			b = append(b, '|')
		}
		b = append(append(b, p.Code...), "000"...)
		b = append(b, 'A'+byte(n>>10%8), 'A'+byte(n>>14%16))
		for m, d := n>>18%9000+uint32(i), uint32(1000); d > 0; d /= 10 {
			b = append(b, '0'+byte(m/d%10))
		}
	}
	return append(b, '\n')
}

// appendFixed appends a number with so many decimals.
func appendFixed(b []byte, v float64, decimals int) []byte {
	unit := int64(1)
	for range decimals {
		unit *= 10
	}
	n := int64(math.Round(v * float64(unit)))
	if n < 0 {
		b, n = append(b, '-'), -n
	}
	b = append(strconv.AppendInt(b, n/unit, 10), '.')
	for rest, d := n%unit, unit/10; d > 0; d /= 10 {
		b = append(b, '0'+byte(rest/d%10))
	}
	return b
}
