package vintage

import (
	"math"

	"github.com/google/uuid"
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

	superseded []uint64               // a bit for each row or street whose id made an id_ban that it has no more
	formers    map[uint32][]uuid.UUID // the other ones that were made and are no more

	rows    map[string]former // by the new id; of the commune under way
	streets map[string]former
	fresh   map[string]bool // the new ids of rows that were not there before
}

// former is what an address or street was: its ids, the latest first, its UUID, who made it, and those that the program
// made before.
type former struct {
	uuid     uuid.UUID
	invented bool
	formers  []uuid.UUID
	ids      []string
}

func newLineage(v *Vintage) *lineage {
	l := &lineage{v: v, space: space(), olds: map[uint32][]string{}}
	rows := Column(v.parts[secAliasRows])
	for i := range v.aliases.len() {
		l.olds[rows.At(i)] = append(l.olds[rows.At(i)], string(v.aliases.at(uint32(i))))
	}
	l.readFormers()
	return l
}

// readFormers sorts the id_ban of earlier vintages by what they led to. After the base has brought its own for all of
// France there are as many as addresses, so that those that an id makes take a bit each.
func (l *lineage) readFormers() {
	entities, given := Column(l.v.parts[secFormerEntities]), Column(l.v.parts[secFormerGiven])
	l.superseded, l.formers = make([]uint64, (l.v.Addresses+l.v.Streets+l.v.Localities+63)/64), map[uint32][]uuid.UUID{}
	for i := range entities.Len() {
		e := entities.At(i)
		if _, ok := given.find(uint32(i)); ok {
			l.formers[e] = append(l.formers[e], l.v.formerUUID(l.space, i))
		} else if int(e/64) < len(l.superseded) {
			l.superseded[e/64] |= 1 << (e % 64)
		}
	}
}

func (l *lineage) isSuperseded(e Entity) bool { return l.superseded[e/64]&(1<<(e%64)) != 0 }

// hasFormers says whether an id_ban of an earlier vintage leads to a row or street.
func (l *lineage) hasFormers(e Entity) bool {
	return l.isSuperseded(e) || len(l.formers[uint32(e)]) > 0
}

// isReused says whether an id, of what has no predecessor, was another's once. The id_ban that is made of it is that
// other's, or was.
func (l *lineage) isReused(id string) bool {
	_, ok := l.v.byAlias(id)
	return ok
}

func (l *lineage) former(e Entity) former {
	id := l.v.ID(e)
	f := former{uuid: l.v.uuidIn(l.space, e), invented: l.v.IsInvented(e), formers: l.formers[uint32(e)], ids: append([]string{id}, l.olds[uint32(e)]...)}
	if l.isSuperseded(e) {
		f.formers = append([]uuid.UUID{madeUUID(l.space, id)}, f.formers...)
	}
	return f
}

// enter matches all addresses of a commune with those it had before.
func (l *lineage) enter(code string, streets []gathered) {
	l.rows, l.streets, l.fresh = map[string]former{}, map[string]former{}, map[string]bool{}
	ordinal, ok := l.v.CommuneOf(code)
	if !ok {
		return
	}
	old := l.v.Commune(ordinal)
	m := newMatching(l, old, streets)
	m.keep()
	if m.open > 0 {
		m.match()
		m.markFresh()
	}
	l.enterStreets(old, streets, m.heirs)
}

// enterStreets gives streets their predecessors: the same key, else the same name, else the street whose rows they got.
func (l *lineage) enterStreets(old Commune, streets []gathered, heirs map[uint32]*gathered) {
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
			if heirs[s] == nil {
				return nil
			}
			return byKey[heirs[s].key]
		},
	} {
		l.claim(old, taken, fitting)
	}
}

// claim gives the old streets that have none an heir, by one rule.
func (l *lineage) claim(old Commune, taken map[uint32]bool, fitting func(uint32) []string) {
	for s := old.From; s < old.To; s++ {
		if taken[s] {
			continue
		}
		for _, key := range fitting(s) {
			if _, done := l.streets[key]; !done {
				taken[s] = true
				l.streets[key] = l.former(l.v.StreetEntity(s))
				break
			}
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
