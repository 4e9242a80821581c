package vintage

import (
	"math"

	"github.com/google/uuid"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/text"
)

// The largest distance between an address and its predecessor: in a street of the same name, and by number alone.
const (
	sameStreetMetres = 50
	sameNumberMetres = 5
)

// predecessorIndex finds the predecessor of each address and street: the entity that it was in the previous vintage. A predecessor has
// at most one successor. matchCommune fills the maps for one commune at a time.
type predecessorIndex struct {
	v         *Vintage
	namespace uuid.UUID
	formerIDs map[uint32][]string // ids of rows and streets in still earlier vintages

	superseded []uint64               // a bit for each entity whose generated id_ban was replaced
	formers    map[uint32][]uuid.UUID // other generated id_ban that were replaced

	rows    map[string]predecessor // by the new id; of the current commune
	streets map[string]predecessor
	isNew   map[string]bool // the new ids of rows without a predecessor
}

// predecessor is an address or street in the previous vintage: its ids, the latest first, its id_ban, whether the program
// generated it, and the generated ones before it.
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

// readFormerUUIDs reads the replaced id_ban by entity. When the base brings its own for all of France there is one for
// each address, so those that an id generates take one bit each.
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

// hasFormerUUIDs reports whether a replaced id_ban leads to an entity.
func (l *predecessorIndex) hasFormerUUIDs(e Entity) bool {
	return l.isSuperseded(e) || len(l.formers[uint32(e)]) > 0
}

// isReused reports whether an id without a predecessor belonged to another entity before, which has or had the id_ban
// that the id generates.
func (l *predecessorIndex) isReused(id string) bool {
	_, ok := l.v.findAlias(id)
	return ok
}

// predecessorOf returns the predecessor data of an entity of the previous vintage.
func (l *predecessorIndex) predecessorOf(e Entity) predecessor {
	id := l.v.ID(e)
	f := predecessor{uuid: l.v.uuidInNamespace(l.namespace, e), isGenerated: l.v.IsGenerated(e), formers: l.formers[uint32(e)], ids: append([]string{id}, l.formerIDs[uint32(e)]...)}
	if l.isSuperseded(e) {
		f.formers = append([]uuid.UUID{uuidOfID(l.namespace, id)}, f.formers...)
	}
	return f
}

// matchCommune finds the predecessors of all addresses and streets of a commune.
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

// matchStreets finds the predecessors of streets by one rule after the other: the same key, the same name, the street
// whose rows they got.
func (l *predecessorIndex) matchStreets(old Commune, streets []streetRows, successors map[uint32]*streetRows) {
	byKey, byName := map[string][]string{}, map[string][]string{} // the keys of the streets with that key or name, in order
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

// assignStreets assigns old streets to new ones by one rule.
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

// candidate is a row of the previous vintage that has no successor yet.
type candidate struct {
	row, street uint32
	id, name    string
}

// houseNumber is what two addresses must share to be the same one.
type houseNumber struct {
	number uint32
	rep    string
}

// communeMatcher assigns the old rows of one commune to its new rows.
type communeMatcher struct {
	predecessors   *predecessorIndex
	old            Commune
	firstRow       uint32 // its first row
	streets        []streetRows
	isMatched      [][]bool // of each new row, by street: it has a predecessor
	unmatched      int      // number of new rows without a predecessor
	isTaken        []bool   // of each old row: it has a successor
	hasSourceUUIDs bool     // the new rows come with an id_ban
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

// isFree reports whether an old row has no successor. A row outside of the commune, which a damaged file may name, is
// never free.
func (m *communeMatcher) isFree(row uint32) bool {
	return row >= m.firstRow && row-m.firstRow < uint32(len(m.isTaken)) && !m.isTaken[row-m.firstRow]
}

// matchUnchanged matches the rows whose id and id_ban are unchanged, which are most. Both vintages have them in the
// same order.
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

// matchUnchangedStreet walks the rows of a new street and of an old one side by side.
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

// precedes reports whether an old row comes before a new one in the order of a street.
func (m *communeMatcher) precedes(row uint32, r *ban.Row) bool {
	n := m.predecessors.v.Number(row)
	return n < r.Numero || n == r.Numero && string(m.predecessors.v.Rep(row)) < r.Rep
}

// isUnchanged reports whether an old row, in a street of the same key, has the id and the id_ban of a new one.
func (m *communeMatcher) isUnchanged(row uint32, r *ban.Row) bool {
	if m.predecessors.v.Number(row) != r.Numero || string(m.predecessors.v.Rep(row)) != r.Rep {
		return false
	}
	if _, isIrregular := m.predecessors.v.irregularAlias(row); isIrregular {
		return false
	}
	if !m.hasSourceUUIDs {
		return true
	}
	given, err := uuid.Parse(r.IDBan)
	return err == nil && given == m.predecessors.v.uuidInNamespace(m.predecessors.namespace, RowEntity(row))
}

// assign makes an old row the predecessor of a new one. A predecessor whose identity the new row has anyway is not
// recorded.
func (m *communeMatcher) assign(i, j int, row uint32) {
	r, e := &m.streets[i].rows[j], RowEntity(row)
	m.isMatched[i][j], m.isTaken[row-m.firstRow] = true, true
	m.unmatched--
	_, owned := m.predecessors.v.storedUUID(e)
	if owned && r.IDBan == "" || len(m.predecessors.formerIDs[uint32(e)]) > 0 || m.predecessors.hasFormerUUIDs(e) || m.byID != nil {
		m.predecessors.rows[r.ID] = m.predecessors.predecessorOf(e)
	}
}

// recordSuccessor records the first street that got a row of an old street.
func (m *communeMatcher) recordSuccessor(s *streetRows, old uint32) {
	if m.successors[old] == nil {
		m.successors[old] = s
	}
}

// applyRules matches the other rows by one rule after the other.
func (m *communeMatcher) applyRules() {
	m.indexCandidates()
	for _, rule := range [...]func(*streetRows, *ban.Row) *candidate{m.findByUUID, m.findByID, m.findInSameStreet, m.findByNumber} {
		for i := range m.streets {
			m.applyRule(i, rule)
		}
	}
}

// indexCandidates indexes the old rows that have no successor.
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

// applyRule matches rows of a street by one rule.
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

// markNew marks the rows without a predecessor.
func (m *communeMatcher) markNew() {
	for i, isMatched := range m.isMatched {
		for j, done := range isMatched {
			if !done {
				m.predecessors.isNew[m.streets[i].rows[j].ID] = true
			}
		}
	}
}

// findByUUID is the rule for rows that keep their id_ban.
func (m *communeMatcher) findByUUID(_ *streetRows, r *ban.Row) *candidate {
	if u, err := uuid.Parse(r.IDBan); err == nil {
		return m.byUUID[u]
	}
	return nil
}

// findByID is the rule for rows that keep their id.
func (m *communeMatcher) findByID(_ *streetRows, r *ban.Row) *candidate { return m.byID[r.ID] }

// findInSameStreet is the rule for the same number in a street of the same name, within sameStreetMetres.
func (m *communeMatcher) findInSameStreet(s *streetRows, r *ban.Row) *candidate {
	name := text.Fold(s.name)
	return m.findNearest(r, sameStreetMetres, func(c *candidate) bool { return c.name == name })
}

// findByNumber is the rule for the same number at nearly the same position, whatever the street's name.
func (m *communeMatcher) findByNumber(_ *streetRows, r *ban.Row) *candidate {
	return m.findNearest(r, sameNumberMetres, func(*candidate) bool { return true })
}

// findNearest is the nearest free candidate with the same house number, within n metres.
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
