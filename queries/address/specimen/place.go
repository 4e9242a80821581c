package specimen

import (
	"bufio"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/text"
)

// place is a commune being filled with streets.
type place struct {
	*commune.Commune
	rand       *rand.Rand
	delivery   string
	postcodes  []string
	parts      []*commune.Commune // delegated and associated ones
	neighbours []string
	taken      map[string]bool // names of streets
	streets    int
	rural      bool
	buf        []byte
}

func newPlace(t *commune.Table, c *commune.Commune, seed uint64) *place {
	h := fnv.New64a()
	h.Write([]byte(c.Code))
	return &place{Commune: c, rand: rand.New(rand.NewPCG(seed, h.Sum64())), delivery: afnor(c.Name), postcodes: c.Postcodes(),
		parts: t.Children(c.Code), neighbours: neighbours(t, c), taken: map[string]bool{}, rural: c.Population < 2000}
}

// neighbours are names of communes that roads may lead to: others with the same postcode.
func neighbours(t *commune.Table, c *commune.Commune) (names []string) {
	for _, postcode := range c.Postcodes() {
		for _, n := range t.ByPostcode(postcode) {
			if n.Kind == commune.Current && n.Code != c.Code && len(names) < 40 {
				names = append(names, n.Name)
			}
		}
	}
	return names
}

// afnor is a name as La Poste writes it: upper case, no accents, at most 32 characters.
func afnor(name string) string {
	s := strings.ToUpper(text.Fold(name))
	return s[:min(len(s), 32)]
}

// way is one street, or one locality, while its rows are written.
type way struct {
	id       string // the row's, up to the number
	head     string // from nom_voie to nom_ancienne_commune
	tail     string // from nom_ld to nom_afnor and the sources
	lon, lat float64
	dx, dy   float64 // its direction, a unit vector
	x, y     float64 // of its start, in Lambert 93
	mainland bool
	locality bool
}

// street writes one street or locality of at most so many rows, and says how many it took.
func (p *place) street(out *bufio.Writer, most int) int {
	w := way{locality: p.chance(p.localities())}
	name := p.name(w.locality)
	p.streets++
	w.id = p.Code + "_" + p.key(w.locality)
	old, oldName := p.old()
	w.head = strings.Join([]string{"", name, p.postcodes[p.skewed(len(p.postcodes))], p.Code, p.Name, old, oldName, ""}, ";")
	hamlet := ""
	if !w.locality && p.rural && p.chance(0.3) {
		hamlet = p.hamlet()
	}
	w.tail = strings.Join([]string{"", "", hamlet, p.delivery, afnor(name), source, source, ""}, ";")
	p.lay(&w)
	if w.locality {
		p.row(out, &w, number{})
		return 1
	}
	return p.numbers(out, &w, most)
}

func (p *place) localities() float64 {
	if p.rural {
		return 0.25
	}
	return 0.03
}

// old is the former commune a street belongs to, where there are any.
func (p *place) old() (code, name string) {
	if len(p.parts) == 0 || p.parts[0].Kind == commune.Arrondissement || p.chance(0.3) {
		return "", ""
	}
	part := p.parts[p.rand.IntN(len(p.parts))]
	return part.Code, part.Name
}

const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz"

// key is what makes a street's id: four digits as in the tax office's register, or six letters and digits while it is
// not in there. Both count the streets, so none comes twice.
func (p *place) key(locality bool) string {
	if n := p.streets; !locality && n < 10000 && p.rand.IntN(100) < 56 {
		return string([]byte{alphabet[n/1000], alphabet[n/100%10], alphabet[n/10%10], alphabet[n%10]})
	}
	const all, prime = 36 * 36 * 36 * 36 * 36 * 36, 1_500_450_271
	n := p.streets * prime % all
	key := [6]byte{}
	for i := range key {
		key[i] = alphabet[n%36]
		n /= 36
	}
	return string(key[:])
}

// lay puts a street somewhere in the commune, thicker towards the centre.
func (p *place) lay(w *way) {
	b := p.Bounds
	w.lon = between(p.Lon+p.rand.NormFloat64()*(b.East-b.West)/6, b.West, b.East)
	w.lat = between(p.Lat+p.rand.NormFloat64()*(b.North-b.South)/6, b.South, b.North)
	w.dy, w.dx = math.Sincos(p.rand.Float64() * 2 * math.Pi)
	if w.mainland = w.lat > 40 && w.lon > -6; w.mainland {
		w.x, w.y = commune.Lambert93(w.lon, w.lat)
	}
}

func between(v, low, high float64) float64 { return max(low, min(v, high)) }

func (p *place) chance(share float64) bool { return p.rand.Float64() < share }

// skewed picks one of n, the first ones more often.
func (p *place) skewed(n int) int {
	u := p.rand.Float64()
	return int(u * u * float64(n))
}
