package vintage

import (
	"math"

	"github.com/google/uuid"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/text"
)

// candidate is a row of the vintage before that has no heir yet.
type candidate struct {
	row, street uint32
	id, name    string
}

// numbered is what two addresses share at least, to be one.
type numbered struct {
	number uint32
	rep    string
}

// matching is the work on one commune: which old row each new one goes on with.
type matching struct {
	l       *lineage
	old     Commune
	first   uint32 // its first row
	streets []gathered
	settled [][]bool // of each new row, by street
	open    int      // new rows that are not
	taken   []bool   // of each old row
	given   bool     // new rows have an id_ban of their own
	heirs   map[uint32]*gathered

	byID     map[string]*candidate
	byUUID   map[uuid.UUID]*candidate
	byNumber map[numbered][]*candidate
}

func newMatching(l *lineage, old Commune, streets []gathered) *matching {
	m := &matching{l: l, old: old, streets: streets, heirs: map[uint32]*gathered{}, settled: make([][]bool, len(streets)),
		first: l.v.Street(old.From).From}
	for i := range streets {
		if streets[i].locality {
			continue
		}
		m.settled[i] = make([]bool, len(streets[i].rows))
		m.open += len(streets[i].rows)
		for j := range streets[i].rows {
			m.given = m.given || streets[i].rows[j].IDBan != ""
		}
	}
	m.taken = make([]bool, max(l.v.Street(max(old.To, 1)-1).To, m.first)-m.first)
	return m
}

// free says whether an old row has no heir. One that lies outside of the commune, in a damaged file, has.
func (m *matching) free(row uint32) bool {
	return row >= m.first && row-m.first < uint32(len(m.taken)) && !m.taken[row-m.first]
}

// keep settles the rows whose id and id_ban are what they were, which most are: both sides are in the same order.
func (m *matching) keep() {
	byKey := map[string][]uint32{}
	for s := m.old.From; s < m.old.To; s++ {
		key := string(m.l.v.StreetKey(s))
		byKey[key] = append(byKey[key], s)
	}
	for i := range m.streets {
		if !m.streets[i].locality {
			for _, s := range byKey[m.streets[i].key] {
				m.keepStreet(i, s)
			}
		}
	}
}

func (m *matching) keepStreet(i int, old uint32) {
	s, rows := m.l.v.Street(old), m.streets[i].rows
	row := s.From
	for j := range rows {
		for row < s.To && m.before(row, &rows[j]) {
			row++
		}
		if row < s.To && m.free(row) && m.same(row, &rows[j]) && regular(&rows[j], m.streets[i].key) {
			m.settle(i, j, row)
			m.inherit(&m.streets[i], old)
		}
	}
}

// before says whether an old row comes before a new one in the order of a street.
func (m *matching) before(row uint32, r *ban.Row) bool {
	n := m.l.v.Number(row)
	return n < r.Numero || n == r.Numero && string(m.l.v.Rep(row)) < r.Rep
}

// same says whether an old row of a street of the same key has the id and the id_ban of a new one.
func (m *matching) same(row uint32, r *ban.Row) bool {
	if m.l.v.Number(row) != r.Numero || string(m.l.v.Rep(row)) != r.Rep {
		return false
	}
	if _, odd := m.l.v.odd(row); odd {
		return false
	}
	if !m.given {
		return true
	}
	given, err := uuid.Parse(r.IDBan)
	return err == nil && given == m.l.v.uuidIn(m.l.space, RowEntity(row))
}

// settle gives a new row its predecessor. What it says by itself is not kept.
func (m *matching) settle(i, j int, row uint32) {
	r, e := &m.streets[i].rows[j], RowEntity(row)
	m.settled[i][j], m.taken[row-m.first] = true, true
	m.open--
	_, owned := m.l.v.owner(e)
	if owned && r.IDBan == "" || len(m.l.olds[uint32(e)]) > 0 || m.l.hasFormers(e) || m.byID != nil {
		m.l.rows[r.ID] = m.l.former(e)
	}
}

// inherit notes the first street that got a row of an old one.
func (m *matching) inherit(s *gathered, old uint32) {
	if m.heirs[old] == nil {
		m.heirs[old] = s
	}
}

// match settles the other rows, by one rule after the other.
func (m *matching) match() {
	m.index()
	for _, rule := range [...]func(*gathered, *ban.Row) *candidate{m.sameUUID, m.sameID, m.sameStreet, m.sameNumber} {
		for i := range m.streets {
			m.run(i, rule)
		}
	}
}

// index makes candidates of the old rows that have no heir.
func (m *matching) index() {
	v := m.l.v
	m.byID, m.byUUID, m.byNumber = map[string]*candidate{}, map[uuid.UUID]*candidate{}, map[numbered][]*candidate{}
	for s := m.old.From; s < m.old.To; s++ {
		street := v.Street(s)
		name := text.Fold(string(v.Name(street.Name)))
		for row := street.From; row < street.To; row++ {
			if !m.free(row) {
				continue
			}
			c := &candidate{row: row, street: s, id: v.ID(RowEntity(row)), name: name}
			m.byID[c.id] = c
			if m.given {
				m.byUUID[v.uuidIn(m.l.space, RowEntity(row))] = c
			}
			n := numbered{v.Number(row), string(v.Rep(row))}
			m.byNumber[n] = append(m.byNumber[n], c)
		}
	}
}

// run gives the rows of a street that have none their predecessors, by one rule.
func (m *matching) run(i int, rule func(*gathered, *ban.Row) *candidate) {
	s := &m.streets[i]
	for j, done := range m.settled[i] {
		if done {
			continue
		}
		if c := rule(s, &s.rows[j]); c != nil && m.free(c.row) {
			m.settle(i, j, c.row)
			m.inherit(s, c.street)
		}
	}
}

// markFresh marks the rows that have no predecessor.
func (m *matching) markFresh() {
	for i, settled := range m.settled {
		for j, done := range settled {
			if !done {
				m.l.fresh[m.streets[i].rows[j].ID] = true
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
		if d := Metres(at, m.l.v.RowPoint(c.row)); m.free(c.row) && d <= metres && fits(c) {
			best, metres = c, math.Nextafter(d, -1)
		}
	}
	return best
}
