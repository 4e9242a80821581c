package vintage

import (
	"cmp"
	"math"
	"slices"

	"github.com/google/uuid"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/text"
)

// How far the predecessor of an address may lie.
const (
	sameStreetMetres = 50
	sameNumberMetres = 5
)

// lineage finds what an address was called in the vintage before. An address there has one heir at most.
type lineage struct {
	v     *Vintage
	space uuid.UUID
	olds  map[uint32][]string // what rows and streets were called even before

	rows    map[string]former // by the new id; of the commune under way
	streets map[string]former
}

// former is what an address or street was: its UUID and its ids, the latest first.
type former struct {
	uuid uuid.UUID
	ids  []string
}

func newLineage(v *Vintage) *lineage {
	l := &lineage{v: v, space: space(), olds: map[uint32][]string{}}
	rows := Column(v.parts[secAliasRows])
	for i := range v.aliases.len() {
		l.olds[rows.At(i)] = append(l.olds[rows.At(i)], string(v.aliases.at(uint32(i))))
	}
	return l
}

func (l *lineage) of(r *ban.Row) (former, bool) {
	f, ok := l.rows[r.ID]
	return f, ok
}

func (l *lineage) ofStreet(s *gathered) (former, bool) {
	f, ok := l.streets[s.key]
	return f, ok
}

func (l *lineage) former(e Entity) former {
	ids := append([]string{l.v.ID(e)}, l.olds[uint32(e)]...)
	return former{l.v.uuidIn(l.space, e), ids}
}

// candidate is a row of the vintage before.
type candidate struct {
	row, street uint32
	id, name    string
	uuid        uuid.UUID
	taken       bool
}

// numbered is what two addresses share at least, to be one.
type numbered struct {
	number uint32
	rep    string
}

// enter matches all addresses of a commune with those it had before.
func (l *lineage) enter(code string, streets []gathered) {
	l.rows, l.streets = map[string]former{}, map[string]former{}
	commune, ok := l.v.CommuneOf(code)
	if !ok {
		return
	}
	olds := l.candidates(commune)
	m := matching{l: l, byNumber: map[numbered][]*candidate{}, byID: map[string]*candidate{}, byUUID: map[uuid.UUID]*candidate{}}
	for i := range olds {
		c := &olds[i]
		m.byID[c.id], m.byUUID[c.uuid] = c, c
		n := numbered{l.v.Number(c.row), string(l.v.Rep(c.row))}
		m.byNumber[n] = append(m.byNumber[n], c)
	}
	for _, pass := range [...]func(*gathered, *ban.Row) *candidate{m.sameUUID, m.sameID, m.sameStreet, m.sameNumber} {
		for i := range streets {
			m.run(&streets[i], pass)
		}
	}
	l.enterStreets(commune, streets, m.heirs)
}

// candidates are the rows of a commune.
func (l *lineage) candidates(commune uint32) []candidate {
	var out []candidate
	c := l.v.Commune(commune)
	for s := c.From; s < c.To; s++ {
		street := l.v.Street(s)
		name := text.Fold(string(l.v.Name(street.Name)))
		for row := street.From; row < street.To; row++ {
			e := RowEntity(row)
			out = append(out, candidate{row: row, street: s, id: l.v.ID(e), name: name, uuid: l.v.uuidIn(l.space, e)})
		}
	}
	return out
}

// matching is the work on one commune.
type matching struct {
	l        *lineage
	byID     map[string]*candidate
	byUUID   map[uuid.UUID]*candidate
	byNumber map[numbered][]*candidate
	heirs    map[uint32]*gathered // of streets: who got one of their rows first
}

// run gives the rows of a street that have none their predecessors, by one rule.
func (m *matching) run(s *gathered, rule func(*gathered, *ban.Row) *candidate) {
	if s.locality {
		return
	}
	if m.heirs == nil {
		m.heirs = map[uint32]*gathered{}
	}
	for i := range s.rows {
		r := &s.rows[i]
		if _, done := m.l.rows[r.ID]; done {
			continue
		}
		if c := rule(s, r); c != nil && !c.taken {
			c.taken = true
			m.l.rows[r.ID] = m.l.former(RowEntity(c.row))
			if m.heirs[c.street] == nil {
				m.heirs[c.street] = s
			}
		}
	}
}

func (m *matching) sameUUID(_ *gathered, r *ban.Row) *candidate {
	if u, err := uuid.Parse(r.IDBan); err == nil {
		return m.byUUID[u]
	}
	return nil
}

func (m *matching) sameID(_ *gathered, r *ban.Row) *candidate { return m.byID[r.ID] }

func (m *matching) sameStreet(s *gathered, r *ban.Row) *candidate {
	name := text.Fold(s.name)
	return m.nearest(r, sameStreetMetres, func(c *candidate) bool { return c.name == name })
}

func (m *matching) sameNumber(_ *gathered, r *ban.Row) *candidate {
	return m.nearest(r, sameNumberMetres, func(*candidate) bool { return true })
}

// nearest is the free candidate of the same number that lies nearest, within so many metres.
func (m *matching) nearest(r *ban.Row, metres float64, fits func(*candidate) bool) *candidate {
	var best *candidate
	at := pointOf(r)
	for _, c := range m.byNumber[numbered{r.Numero, r.Rep}] {
		if d := Metres(at, m.l.v.RowPoint(c.row)); !c.taken && d <= metres && fits(c) {
			best, metres = c, math.Nextafter(d, -1)
		}
	}
	return best
}

// enterStreets gives streets their predecessors: the same key, else the same name, else the street whose rows they got.
func (l *lineage) enterStreets(commune uint32, streets []gathered, heirs map[uint32]*gathered) {
	c, taken := l.v.Commune(commune), map[uint32]bool{}
	rules := [...]func(uint32, *gathered) bool{
		func(old uint32, s *gathered) bool { return string(l.v.StreetKey(old)) == s.key },
		func(old uint32, s *gathered) bool { return string(l.v.Name(l.v.Street(old).Name)) == s.name },
		func(old uint32, s *gathered) bool { return heirs[old] != nil && heirs[old].key == s.key },
	}
	byKey := slices.Clone(streets)
	slices.SortStableFunc(byKey, func(x, y gathered) int { return cmp.Compare(x.key, y.key) })
	for _, rule := range rules {
		l.claim(c, byKey, taken, rule)
	}
}

func (l *lineage) claim(c Commune, streets []gathered, taken map[uint32]bool, rule func(uint32, *gathered) bool) {
	for old := c.From; old < c.To; old++ {
		for i := range streets {
			if _, done := l.streets[streets[i].key]; taken[old] || done || !rule(old, &streets[i]) {
				continue
			}
			taken[old] = true
			l.streets[streets[i].key] = l.former(l.v.StreetEntity(old))
		}
	}
}

// Metres is the distance between two points, good to a millimetre over the distances that matter here.
func Metres(a, b Point) float64 {
	const degree = math.Pi / 180 / 1e6
	const earth = 6_371_008.8
	dlat := float64(a.Lat-b.Lat) * degree
	dlon := float64(a.Lon-b.Lon) * degree
	s1, s2 := math.Sin(dlat/2), math.Sin(dlon/2)
	h := s1*s1 + math.Cos(float64(a.Lat)*degree)*math.Cos(float64(b.Lat)*degree)*s2*s2
	return 2 * earth * math.Asin(math.Sqrt(min(h, 1)))
}
