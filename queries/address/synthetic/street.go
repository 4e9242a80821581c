package synthetic

import (
	"bufio"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/text"
)

// generator writes the rows of one commune.
type generator struct {
	*commune.Commune
	rand           *rand.Rand
	delivery       string
	postcodes      []string
	formerCommunes []*commune.Commune // delegated and associated communes
	neighbours     []string
	usedNames      map[string]bool // street names of this commune
	streetCount    int
	isRural        bool
	buf            []byte
}

// newGenerator returns the generator of a commune. Its random numbers depend only on the seed and the commune's code.
func newGenerator(t *commune.Table, c *commune.Commune, seed uint64) *generator {
	h := fnv.New64a()
	h.Write([]byte(c.Code))
	return &generator{Commune: c, rand: rand.New(rand.NewPCG(seed, h.Sum64())), delivery: postalName(c.Name), postcodes: c.Postcodes(),
		formerCommunes: t.Children(c.Code), neighbours: findNeighbours(t, c), usedNames: map[string]bool{}, isRural: c.Population < 2000}
}

// findNeighbours names communes that a road may lead to: the others with the same postcode, 40 at most.
func findNeighbours(t *commune.Table, c *commune.Commune) (names []string) {
	for _, postcode := range c.Postcodes() {
		for _, n := range t.ByPostcode(postcode) {
			if n.Kind == commune.Current && n.Code != c.Code && len(names) < 40 {
				names = append(names, n.Name)
			}
		}
	}
	return names
}

// postalName is a name as La Poste prints it: upper case, without accents, at most 32 characters.
func postalName(name string) string {
	s := strings.ToUpper(text.Fold(name))
	return s[:min(len(s), 32)]
}

// street is one street or locality while its rows are written.
type street struct {
	id         string // of a row, up to the number
	head       string // the columns from nom_voie to nom_ancienne_commune
	tail       string // the columns from alias to source_nom_voie
	lon, lat   float64
	dx, dy     float64 // direction, a unit vector
	x, y       float64 // start, in Lambert 93
	isMainland bool
	isLocality bool
}

// writeStreet writes one street or locality of at most n rows and returns how many it wrote.
func (p *generator) writeStreet(out *bufio.Writer, most int) int {
	s := street{isLocality: p.isChosen(p.localityShare())}
	name := p.newStreetName(s.isLocality)
	p.streetCount++
	s.id = p.Code + "_" + p.newStreetKey(s.isLocality)
	formerCode, formerName := p.pickFormerCommune()
	s.head = strings.Join([]string{"", name, p.postcodes[p.pickSkewed(len(p.postcodes))], p.Code, p.Name, formerCode, formerName, ""}, ";")
	hamlet := ""
	if !s.isLocality && p.isRural && p.isChosen(0.3) {
		hamlet = p.newHamletName()
	}
	s.tail = strings.Join([]string{"", "", hamlet, p.delivery, postalName(name), source, source, ""}, ";")
	p.placeStreet(&s)
	if s.isLocality {
		p.writeRow(out, &s, houseNumber{})
		return 1
	}
	return p.writeNumbers(out, &s, most)
}

// localityShare is the share of localities among streets.
func (p *generator) localityShare() float64 {
	if p.isRural {
		return 0.25
	}
	return 0.03
}

// pickFormerCommune picks the former commune that a street lies in, or none.
func (p *generator) pickFormerCommune() (code, name string) {
	if len(p.formerCommunes) == 0 || p.formerCommunes[0].Kind == commune.Arrondissement || p.isChosen(0.3) {
		return "", ""
	}
	part := p.formerCommunes[p.rand.IntN(len(p.formerCommunes))]
	return part.Code, part.Name
}

const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz"

// newStreetKey is the part of a street's id after the commune's code: four digits as in the register of the tax office,
// or six letters and digits as for streets that are not yet in it. Both come from the count of streets, so no key comes
// twice.
func (p *generator) newStreetKey(locality bool) string {
	if n := p.streetCount; !locality && n < 10000 && p.rand.IntN(100) < 56 {
		return string([]byte{alphabet[n/1000], alphabet[n/100%10], alphabet[n/10%10], alphabet[n%10]})
	}
	const all, prime = 36 * 36 * 36 * 36 * 36 * 36, 1_500_450_271
	n := p.streetCount * prime % all
	key := [6]byte{}
	for i := range key {
		key[i] = alphabet[n%36]
		n /= 36
	}
	return string(key[:])
}

// placeStreet puts a street at a random place in the commune, more often near its centre.
func (p *generator) placeStreet(s *street) {
	b := p.Bounds
	s.lon = clamp(p.Lon+p.rand.NormFloat64()*(b.East-b.West)/6, b.West, b.East)
	s.lat = clamp(p.Lat+p.rand.NormFloat64()*(b.North-b.South)/6, b.South, b.North)
	s.dy, s.dx = math.Sincos(p.rand.Float64() * 2 * math.Pi)
	if s.isMainland = s.lat > 40 && s.lon > -6; s.isMainland {
		s.x, s.y = commune.Lambert93(s.lon, s.lat)
	}
}

func clamp(v, low, high float64) float64 { return max(low, min(v, high)) }

// isChosen is true with a probability.
func (p *generator) isChosen(share float64) bool { return p.rand.Float64() < share }

// pickSkewed picks one of n, the first ones more often.
func (p *generator) pickSkewed(n int) int {
	u := p.rand.Float64()
	return int(u * u * float64(n))
}

// houseNumber is a house number and its position: metres along the street and metres from its middle.
type houseNumber struct {
	value       int
	rep         string
	along, side float64
}

// maxNumber is the highest house number.
const maxNumber = 9000

// writeNumbers writes the house numbers of a street, at most n, and returns how many it wrote.
func (p *generator) writeNumbers(out *bufio.Writer, s *street, most int) int {
	want := min(most, 1+int(p.rand.ExpFloat64()*15))
	isMetric := p.isRural && p.isChosen(0.35)
	written := 0
	for n := (houseNumber{}); written < want && n.value < maxNumber; {
		p.advance(&n, isMetric)
		for _, rep := range p.pickReps() {
			if written == want {
				break
			}
			n.rep = rep
			p.writeRow(out, s, n)
			written++
		}
	}
	return written
}

// advance moves n to the next number. Numbers alternate between the sides, with gaps. Metric numbers are the metres
// from the start of the street.
func (p *generator) advance(n *houseNumber, isMetric bool) {
	step := 1
	if isMetric {
		step = 5 + p.rand.IntN(60)
	} else if p.isChosen(0.12) {
		step += 2 * (1 + p.rand.IntN(2))
	}
	n.value += step
	n.along = float64(n.value) * 6
	if isMetric {
		n.along = float64(n.value)
	}
	n.side = 8 + p.rand.Float64()*12
	if n.value%2 == 0 {
		n.side = -n.side
	}
}

// repSeries are the repetition indexes that one number may have.
var repSeries = [...][]string{{"", "bis"}, {"", "bis"}, {"", "bis"}, {"", "bis", "ter"}, {"", "bis", "ter", "quater"}, {"", "a"}, {"", "a", "b"},
	{"a", "b", "c", "d"}}

// pickReps picks the repetition indexes of one number; most have none.
func (p *generator) pickReps() []string {
	if p.isChosen(0.07) {
		return repSeries[p.rand.IntN(len(repSeries))]
	}
	return repSeries[0][:1]
}

const metresPerDegree = 111_320 // metres of latitude

// writeRow writes one CSV line.
func (p *generator) writeRow(out *bufio.Writer, s *street, n houseNumber) {
	b := append(p.buf[:0], s.id...)
	if s.isLocality {
		b = append(b, ";;99999;"...)
	} else {
		b = appendNumber(b, n)
	}
	b = append(b, s.head...)
	east, north := s.dx*n.along-s.dy*n.side, s.dy*n.along+s.dx*n.side
	if s.isMainland {
		b = append(appendFixed(b, s.x+east, 2), ';')
		b = append(appendFixed(b, s.y+north, 2), ';')
	} else {
		b = append(b, ";;"...)
	}
	lon := clamp(s.lon+east/(metresPerDegree*math.Cos(s.lat*math.Pi/180)), p.Bounds.West, p.Bounds.East)
	lat := clamp(s.lat+north/metresPerDegree, p.Bounds.South, p.Bounds.North)
	b = append(appendFixed(b, lon, 6), ';')
	b = append(appendFixed(b, lat, 6), ';')
	b = append(b, p.pickPositionType(s.isLocality)...)
	b = append(b, s.tail...)
	b = p.appendCertification(b)
	p.buf = b
	out.Write(b)
}

// appendNumber appends the end of the id, the empty id_fantoir, the number and the repetition index.
func appendNumber(b []byte, n houseNumber) []byte {
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

// pickPositionType picks what the coordinates are the position of.
func (p *generator) pickPositionType(locality bool) string {
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

// appendCertification appends the certification and the cadastral parcels.
func (p *generator) appendCertification(b []byte) []byte {
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

// appendFixed appends a number with n decimals, as strconv would without allocating.
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
