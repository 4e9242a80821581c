package accuracy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"lieudit/queries/address"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/perturb"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

const (
	absentSet      = "vintage absent"
	countAnswered  = "answered"        // any answer came
	countElsewhere = "found elsewhere" // the first answer is in a commune that was not typed
)

// maxTries is how often an address is drawn for each question before fewer are made.
const maxTries = 100

// drawAbsent makes n questions about addresses that the vintage does not have, the same ones for the same seed. Each is a number and a street
// of one commune, written with another commune that has no such street. The four writings take turns.
func drawAbsent(v *vintage.Vintage, seed uint64, n int) []group {
	d := absentDrawer{v: v, rng: rand.New(rand.NewPCG(seed, 1)), communesOf: listCommunesByStreet(v), communesNamed: listCommunesByName(v)}
	groups := make([]group, len(absentWritings))
	for i, w := range absentWritings {
		groups[i] = group{set: absentSet, kind: w.kind, counters: []string{countAnswered, countElsewhere, countFalseExact, countFalseResolved}}
	}
	made := 0
	for try := 0; made < n && try < maxTries*n; try++ {
		w := made % len(absentWritings)
		if q, ok := d.draw(absentWritings[w]); ok {
			groups[w].questions = append(groups[w].questions, q)
			made++
		}
	}
	return groups
}

// absentWriting is a way to write an address.
type absentWriting struct {
	kind                    string
	hasPostcode, hasCommune bool
	unaccented              bool // and in lower case
}

var absentWritings = []absentWriting{
	{"commune", false, true, false},
	{"postcode + commune", true, true, false},
	{"postcode + commune, unaccented", true, true, true},
	{"postcode", true, false, false},
}

// absentDrawer draws addresses that do not exist.
type absentDrawer struct {
	v             *vintage.Vintage
	rng           *rand.Rand
	communesOf    map[string][]uint32 // communes that have a street, by nameKeys
	communesNamed map[string][]uint32 // communes with a name, by its folded text; there may be several
}

// draw draws a row and a commune. It returns false if a commune that the writing may mean has such a street. Communes are drawn by the number
// of their streets, as people ask about them.
func (d *absentDrawer) draw(w absentWriting) (question, bool) {
	v := d.v
	row := uint32(d.rng.IntN(v.Addresses))
	typed := v.StreetCommune(uint32(d.rng.IntN(v.Streets + v.Localities)))
	postcodes := v.CommunePostcodes(typed)
	if postcodes.Len() == 0 || postcodes.At(0) == 0 {
		return question{}, false
	}
	postcode := postcodes.At(d.rng.IntN(postcodes.Len()))
	city := string(v.Name(v.Commune(typed).Name))
	var meant []uint32
	if w.hasCommune {
		meant = append(meant, d.communesNamed[text.Fold(city)]...)
	}
	if w.hasPostcode {
		meant = appendColumn(meant, v.PostcodeCommunes(postcode))
	}
	street := string(v.Name(v.StreetName(v.StreetOf(row))))
	if !d.isAbsent(street, meant) {
		return question{}, false
	}
	line := fmt.Sprintf("%d%s %s", v.Number(row), v.Rep(row), street)
	if w.hasPostcode {
		line += fmt.Sprintf(" %05d", postcode)
	}
	if w.hasCommune {
		line += " " + city
	}
	if w.unaccented {
		line = text.Fold(line)
	}
	return question{set: absentSet, kind: w.kind, text: line, judge: d.newJudge(city, meant)}, true
}

// isAbsent reports whether none of the communes has a street of that name, or one that differs only in its type or its linking words.
func (d *absentDrawer) isAbsent(street string, communes []uint32) bool {
	keys := nameKeys(street)
	for _, key := range keys {
		if slices.ContainsFunc(d.communesOf[key], func(commune uint32) bool { return slices.Contains(communes, commune) }) {
			return false
		}
	}
	return len(keys) > 0
}

// newJudge returns the judge of the answers to an absent address. No answer is right. An answer is elsewhere unless its commune is one of those
// that may be meant or has the typed name.
func (d *absentDrawer) newJudge(city string, meant []uint32) func([]address.Match) judgement {
	return func(answers []address.Match) (result judgement) {
		result.first, result.topFive = len(answers) == 0, len(answers) == 0
		if len(answers) == 0 {
			return result
		}
		best := answers[0]
		result.counted = append(result.counted, countAnswered)
		isMeant := slices.ContainsFunc(meant, func(commune uint32) bool { return d.v.Commune(commune).String() == best.CityCode })
		if !isMeant && text.Fold(best.City) != text.Fold(city) {
			result.counted = append(result.counted, countElsewhere)
		}
		if best.Verdict == address.Exact {
			result.counted = append(result.counted, countFalseExact)
		}
		if best.IsResolved {
			result.counted = append(result.counted, countFalseResolved)
		}
		return result
	}
}

// listCommunesByStreet lists the communes that have a street or locality of a name.
func listCommunesByStreet(v *vintage.Vintage) map[string][]uint32 {
	communes := map[string][]uint32{}
	for street := range uint32(v.Streets + v.Localities) {
		for _, key := range nameKeys(string(v.Name(v.StreetName(street)))) {
			communes[key] = append(communes[key], v.StreetCommune(street))
		}
	}
	return communes
}

// listCommunesByName lists the communes by each name: their own, that of a former commune, of a post office or of the city of an
// arrondissement.
func listCommunesByName(v *vintage.Vintage) map[string][]uint32 {
	communes := map[string][]uint32{}
	for commune := range uint32(v.Communes) {
		from, to := v.CommunePlaces(commune)
		for place := from; place < to; place++ {
			name := text.Fold(string(v.Name(v.Place(place).Name)))
			communes[name] = append(communes[name], commune)
		}
	}
	return communes
}

// nameKeys returns the words of a street's name without its type and its linking words, so that "Chemin de l'Église" and "Rue Église" have a
// common key. A second key lacks the first word, because package text does not know every type, such as that of "Venelle de l'Église". A name
// that consists of a type and linking words has no key.
func nameKeys(name string) (keys []string) {
	terms := text.Terms(name)
	for from := range min(2, len(terms)) {
		var words []string
		for _, t := range terms[from:] {
			if text.ClassOf(t.Text) == text.Content {
				words = append(words, t.Text)
			}
		}
		if key := strings.Join(words, " "); key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// appendColumn appends the numbers of a column.
func appendColumn(numbers []uint32, column vintage.Column) []uint32 {
	for i := range column.Len() {
		numbers = append(numbers, column.At(i))
	}
	return numbers
}

const (
	exactSet   = "vintage exact"
	countExact = "exact" // the first answer is rated exact, rightly or not
)

// unusedNumber is a number from which on hardly any street has numbers. The drawn rows are not the whole vintage, so a number missing from them
// may exist.
const unusedNumber = 9000

// drawExact draws n rows of the vintage and makes n questions of each kind of package perturb about them, the clean ones first. The same seed
// makes the same questions. A false exact is an answer that is rated exact, has another id, and does not have the same words.
func drawExact(v *vintage.Vintage, engine *address.Engine, seed uint64, n int) (groups []group) {
	rows := drawRows(v, engine, seed, n)
	if len(rows) == 0 {
		return nil
	}
	w := perturb.NewReference(rows)
	w.Unused = unusedNumber
	for i, kind := range perturb.Kinds() {
		g := group{set: exactSet, kind: kind.Name, counters: []string{countExact, countFalseExact}}
		for _, q := range kind.Sample(w, rows, uint64(i), n) {
			g.questions = append(g.questions, question{set: exactSet, kind: kind.Name, text: q.Line(), id: q.Row.ID,
				judge: func(answers []address.Match) judgement { return judgeDamaged(q, answers) }})
		}
		groups = append(groups, g)
	}
	return groups
}

// drawRows draws rows with a postcode from the vintage. One row may be drawn twice.
func drawRows(v *vintage.Vintage, engine *address.Engine, seed uint64, n int) (rows []ban.Row) {
	rng := rand.New(rand.NewPCG(seed, 2))
	for try := 0; len(rows) < n && try < maxTries*n; try++ {
		id := v.ID(vintage.RowEntity(uint32(rng.IntN(v.Addresses))))
		r, ok := engine.View(id)
		if !ok || r.Postcode == "" {
			continue
		}
		number, err := strconv.ParseUint(r.Number, 10, 32)
		if err != nil {
			continue
		}
		rows = append(rows, ban.Row{
			ID: r.ID, IDBan: r.BanID, Numero: uint32(number), Rep: r.Rep, Voie: r.Street, LieuDit: r.Locality, CodePostal: r.Postcode,
			CodeInsee: r.CityCode, Commune: r.City, CodeInseeAncienne: r.OldCityCode, CommuneAncienne: r.OldCity, Lon: r.Lon, Lat: r.Lat,
		})
	}
	return rows
}

// judgeDamaged judges the answers to a damaged question as package perturb does.
func judgeDamaged(q perturb.Question, answers []address.Match) (result judgement) {
	var t perturb.Accuracy
	t.Add(q, answers)
	result.first, result.topFive = t.Top1 > 0, t.TopN > 0
	if t.Exact > 0 {
		result.counted = append(result.counted, countExact)
	}
	if t.FalseExact > 0 {
		result.counted = append(result.counted, countFalseExact)
	}
	return result
}
