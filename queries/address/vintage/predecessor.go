package vintage

import (
	"math"

	"github.com/google/uuid"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/text"
)

// How far the predecessor of an address may lie.
const (
	sameStreetMetres = 50
	sameNumberMetres = 5
)

// predecessorIndex finds what an address was called in the vintage before. An address there has one heir at most.
type predecessorIndex struct {
	v         *Vintage
	namespace uuid.UUID
	formerIDs map[uint32][]string // what rows and streets were called even before

	superseded []uint64               // a bit for each row or street whose id made an id_ban that it has no more
	formers    map[uint32][]uuid.UUID // the other ones that were made and are no more

	rows    map[string]predecessor // by the new id; of the commune under way
	streets map[string]predecessor
	isNew   map[string]bool // the new ids of rows that were not there before
}

// predecessor is what an address or street was: its ids, the latest first, its UUID, who made it, and those that the program
// made before.
type predecessor struct {
	uuid        uuid.UUID
	isGenerated bool
	formers     []uuid.UUID
	ids         []string
}

func newPredecessorIndex(v *Vintage) *predecessorIndex {
	l := &predecessorIndex{v: v, namespace: uuidNamespace(), formerIDs: map[uint32][]string{}}
	rows := Column(v.sections[secAliasEntities])
	for i := range v.aliases.count() {
		l.formerIDs[rows.At(i)] = append(l.formerIDs[rows.At(i)], string(v.aliases.text(uint32(i))))
	}
	l.readFormerUUIDs()
	return l
}

// readFormerUUIDs sorts the id_ban of earlier vintages by what they led to. After the base has brought its own for all of
// France there are as many as addresses, so that those that an id makes take a bit each.
func (l *predecessorIndex) readFormerUUIDs() {
	entities, given := Column(l.v.sections[secFormerEntities]), Column(l.v.sections[secFormerStored])
	l.superseded, l.formers = make([]uint64, (l.v.Addresses+l.v.Streets+l.v.Localities+63)/64), map[uint32][]uuid.UUID{}
	for i := range entities.Len() {
		e := entities.At(i)
		if _, ok := given.indexOf(uint32(i)); ok {
			l.formers[e] = append(l.formers[e], l.v.formerUUID(l.namespace, i))
		} else if int(e/64) < len(l.superseded) {
			l.superseded[e/64] |= 1 << (e % 64)
		}
	}
}

func (l *predecessorIndex) isSuperseded(e Entity) bool { return l.superseded[e/64]&(1<<(e%64)) != 0 }

// hasFormerUUIDs says whether an id_ban of an earlier vintage leads to a row or street.
func (l *predecessorIndex) hasFormerUUIDs(e Entity) bool {
	return l.isSuperseded(e) || len(l.formers[uint32(e)]) > 0
}

// isReused says whether an id, of what has no predecessor, was another's once. The id_ban that is made of it is that
// other's, or was.
func (l *predecessorIndex) isReused(id string) bool {
	_, ok := l.v.findAlias(id)
	return ok
}

func (l *predecessorIndex) predecessorOf(e Entity) predecessor {
	id := l.v.ID(e)
	f := predecessor{uuid: l.v.uuidInNamespace(l.namespace, e), isGenerated: l.v.IsGenerated(e), formers: l.formers[uint32(e)], ids: append([]string{id}, l.formerIDs[uint32(e)]...)}
	if l.isSuperseded(e) {
		f.formers = append([]uuid.UUID{uuidOfID(l.namespace, id)}, f.formers...)
	}
	return f
}

// matchCommune matches all addresses of a commune with those it had before.
func (l *predecessorIndex) matchCommune(code string, streets []streetRows) {
	l.rows, l.streets, l.isNew = map[string]predecessor{}, map[string]predecessor{}, map[string]bool{}
	ordinal, ok := l.v.CommuneOf(code)
	if !ok {
		return
	}
	old := l.v.Commune(ordinal)
	m := newCommuneMatcher(l, old, streets)
	m.matchUnchanged()
	if m.unmatched > 0 {
		m.applyRules()
		m.markNew()
	}
	l.matchStreets(old, streets, m.successors)
}

// matchStreets gives streets their predecessors: the same key, else the same name, else the street whose rows they got.
func (l *predecessorIndex) matchStreets(old Commune, streets []streetRows, successors map[uint32]*streetRows) {
	byKey, byName := map[string][]string{}, map[string][]string{} // the keys of the streets with a key or name, in order
	for i := range streets {
		byKey[streets[i].key] = []string{streets[i].key}
		byName[streets[i].name] = append(byName[streets[i].name], streets[i].key)
	}
	taken := map[uint32]bool{}
	for _, fitting := range [...]func(uint32) []string{
		func(s uint32) []string { return byKey[string(l.v.StreetKey(s))] },
		func(s uint32) []string { return byName[string(l.v.Name(l.v.Street(s).Name))] },
		func(s uint32) []string {
			if successors[s] == nil {
				return nil
			}
			return byKey[successors[s].key]
		},
	} {
		l.assignStreets(old, taken, fitting)
	}
}

// assignStreets gives the old streets that have none an heir, by one rule.
func (l *predecessorIndex) assignStreets(old Commune, taken map[uint32]bool, fitting func(uint32) []string) {
	for s := old.From; s < old.To; s++ {
		if taken[s] {
			continue
		}
		for _, key := range fitting(s) {
			if _, done := l.streets[key]; !done {
				taken[s] = true
				l.streets[key] = l.predecessorOf(l.v.StreetEntity(s))
				break
			}
		}
	}
}

// candidate is a row of the vintage before that has no heir yet.
type candidate struct {
	row, street uint32
	id, name    string
}

// houseNumber is what two addresses share at least, to be one.
type houseNumber struct {
	number uint32
	rep    string
}

// communeMatcher is the work on one commune: which old row each new one goes on with.
type communeMatcher struct {
	predecessors   *predecessorIndex
	old            Commune
	firstRow       uint32 // its first row
	streets        []streetRows
	isMatched      [][]bool // of each new row, by street
	unmatched      int      // new rows that are not
	isTaken        []bool   // of each old row
	hasSourceUUIDs bool     // new rows have an id_ban of their own
	successors     map[uint32]*streetRows

	byID     map[string]*candidate
	byUUID   map[uuid.UUID]*candidate
	byNumber map[houseNumber][]*candidate
}

func newCommuneMatcher(l *predecessorIndex, old Commune, streets []streetRows) *communeMatcher {
	m := &communeMatcher{predecessors: l, old: old, streets: streets, successors: map[uint32]*streetRows{}, isMatched: make([][]bool, len(streets)),
		firstRow: l.v.Street(old.From).From}
	for i := range streets {
		if streets[i].isLocality {
			continue
		}
		m.isMatched[i] = make([]bool, len(streets[i].rows))
		m.unmatched += len(streets[i].rows)
		for j := range streets[i].rows {
			m.hasSourceUUIDs = m.hasSourceUUIDs || streets[i].rows[j].IDBan != ""
		}
	}
	m.isTaken = make([]bool, max(l.v.Street(max(old.To, 1)-1).To, m.firstRow)-m.firstRow)
	return m
}

// isFree says whether an old row has no heir. One that lies outside of the commune, in a damaged file, has.
func (m *communeMatcher) isFree(row uint32) bool {
	return row >= m.firstRow && row-m.firstRow < uint32(len(m.isTaken)) && !m.isTaken[row-m.firstRow]
}

// matchUnchanged settles the rows whose id and id_ban are what they were, which most are: both sides are in the same order.
func (m *communeMatcher) matchUnchanged() {
	byKey := map[string][]uint32{}
	for s := m.old.From; s < m.old.To; s++ {
		key := string(m.predecessors.v.StreetKey(s))
		byKey[key] = append(byKey[key], s)
	}
	for i := range m.streets {
		if !m.streets[i].isLocality {
			for _, s := range byKey[m.streets[i].key] {
				m.matchUnchangedStreet(i, s)
			}
		}
	}
}

func (m *communeMatcher) matchUnchangedStreet(i int, old uint32) {
	s, rows := m.predecessors.v.Street(old), m.streets[i].rows
	row := s.From
	for j := range rows {
		for row < s.To && m.precedes(row, &rows[j]) {
			row++
		}
		if row < s.To && m.isFree(row) && m.isUnchanged(row, &rows[j]) && hasRegularID(&rows[j], m.streets[i].key) {
			m.assign(i, j, row)
			m.recordSuccessor(&m.streets[i], old)
		}
	}
}

// precedes says whether an old row comes precedes a new one in the order of a street.
func (m *communeMatcher) precedes(row uint32, r *ban.Row) bool {
	n := m.predecessors.v.Number(row)
	return n < r.Numero || n == r.Numero && string(m.predecessors.v.Rep(row)) < r.Rep
}

// isUnchanged says whether an old row of a street of the same key has the id and the id_ban of a new one.
func (m *communeMatcher) isUnchanged(row uint32, r *ban.Row) bool {
	if m.predecessors.v.Number(row) != r.Numero || string(m.predecessors.v.Rep(row)) != r.Rep {
		return false
	}
	if _, odd := m.predecessors.v.irregularAlias(row); odd {
		return false
	}
	if !m.hasSourceUUIDs {
		return true
	}
	given, err := uuid.Parse(r.IDBan)
	return err == nil && given == m.predecessors.v.uuidInNamespace(m.predecessors.namespace, RowEntity(row))
}

// assign gives a new row its predecessor. What it says by itself is not kept.
func (m *communeMatcher) assign(i, j int, row uint32) {
	r, e := &m.streets[i].rows[j], RowEntity(row)
	m.isMatched[i][j], m.isTaken[row-m.firstRow] = true, true
	m.unmatched--
	_, owned := m.predecessors.v.storedUUID(e)
	if owned && r.IDBan == "" || len(m.predecessors.formerIDs[uint32(e)]) > 0 || m.predecessors.hasFormerUUIDs(e) || m.byID != nil {
		m.predecessors.rows[r.ID] = m.predecessors.predecessorOf(e)
	}
}

// recordSuccessor notes the first street that got a row of an old one.
func (m *communeMatcher) recordSuccessor(s *streetRows, old uint32) {
	if m.successors[old] == nil {
		m.successors[old] = s
	}
}

// applyRules settles the other rows, by one rule after the other.
func (m *communeMatcher) applyRules() {
	m.indexCandidates()
	for _, rule := range [...]func(*streetRows, *ban.Row) *candidate{m.findByUUID, m.findByID, m.findInSameStreet, m.findByNumber} {
		for i := range m.streets {
			m.applyRule(i, rule)
		}
	}
}

// indexCandidates makes candidates of the old rows that have no heir.
func (m *communeMatcher) indexCandidates() {
	v := m.predecessors.v
	m.byID, m.byUUID, m.byNumber = map[string]*candidate{}, map[uuid.UUID]*candidate{}, map[houseNumber][]*candidate{}
	for s := m.old.From; s < m.old.To; s++ {
		street := v.Street(s)
		name := text.Fold(string(v.Name(street.Name)))
		for row := street.From; row < street.To; row++ {
			if !m.isFree(row) {
				continue
			}
			c := &candidate{row: row, street: s, id: v.ID(RowEntity(row)), name: name}
			m.byID[c.id] = c
			if m.hasSourceUUIDs {
				m.byUUID[v.uuidInNamespace(m.predecessors.namespace, RowEntity(row))] = c
			}
			n := houseNumber{v.Number(row), string(v.Rep(row))}
			m.byNumber[n] = append(m.byNumber[n], c)
		}
	}
}

// applyRule gives the rows of a street that have none their predecessors, by one rule.
func (m *communeMatcher) applyRule(i int, rule func(*streetRows, *ban.Row) *candidate) {
	s := &m.streets[i]
	for j, done := range m.isMatched[i] {
		if done {
			continue
		}
		if c := rule(s, &s.rows[j]); c != nil && m.isFree(c.row) {
			m.assign(i, j, c.row)
			m.recordSuccessor(s, c.street)
		}
	}
}

// markNew marks the rows that have no predecessor.
func (m *communeMatcher) markNew() {
	for i, settled := range m.isMatched {
		for j, done := range settled {
			if !done {
				m.predecessors.isNew[m.streets[i].rows[j].ID] = true
			}
		}
	}
}

func (m *communeMatcher) findByUUID(_ *streetRows, r *ban.Row) *candidate {
	if u, err := uuid.Parse(r.IDBan); err == nil {
		return m.byUUID[u]
	}
	return nil
}

func (m *communeMatcher) findByID(_ *streetRows, r *ban.Row) *candidate { return m.byID[r.ID] }

func (m *communeMatcher) findInSameStreet(s *streetRows, r *ban.Row) *candidate {
	name := text.Fold(s.name)
	return m.findNearest(r, sameStreetMetres, func(c *candidate) bool { return c.name == name })
}

func (m *communeMatcher) findByNumber(_ *streetRows, r *ban.Row) *candidate {
	return m.findNearest(r, sameNumberMetres, func(*candidate) bool { return true })
}

// findNearest is the free candidate of the same number that lies findNearest, within so many metres.
func (m *communeMatcher) findNearest(r *ban.Row, metres float64, fits func(*candidate) bool) *candidate {
	var best *candidate
	at := pointOf(r)
	for _, c := range m.byNumber[houseNumber{r.Numero, r.Rep}] {
		if d := Metres(at, m.predecessors.v.RowPoint(c.row)); m.isFree(c.row) && d <= metres && fits(c) {
			best, metres = c, math.Nextafter(d, -1)
		}
	}
	return best
}
