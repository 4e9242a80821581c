package accuracy

import (
	"math/rand/v2"
	"strconv"

	"lieudit/queries/address"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/noise"
	"lieudit/queries/address/vintage"
)

const (
	exactSet   = "vintage exact"
	countExact = "exact" // the first answer is rated exact, rightly or not
)

// unusedNumber is a number from which on hardly any street has numbers. The rows that are drawn are not all of the vintage, so
// a number that they lack may exist.
const unusedNumber = 9000

// drawExact draws so many rows of the vintage and makes as many questions of each kind of package noise about them, the clean
// ones first. The same seed makes the same questions. A false exact is an answer that is rated exact, has another id, and does
// not go by the same words.
func drawExact(v *vintage.Vintage, engine *address.Engine, seed uint64, n int) (groups []group) {
	rows := drawRows(v, engine, seed, n)
	if len(rows) == 0 {
		return nil
	}
	w := noise.WorldOf(rows)
	w.Unused = unusedNumber
	for i, kind := range noise.Kinds() {
		g := group{set: exactSet, kind: kind.Name, counters: []string{countExact, countFalseExact}}
		for _, q := range kind.Draw(w, rows, uint64(i), n) {
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

// judgeDamaged judges the answers to a damaged question as package noise does.
func judgeDamaged(q noise.Question, answers []address.Match) (result judgement) {
	var t noise.Tally
	t.Count(q, answers)
	result.first, result.topFive = t.First > 0, t.Among > 0
	if t.Exact > 0 {
		result.counted = append(result.counted, countExact)
	}
	if t.FalseExact > 0 {
		result.counted = append(result.counted, countFalseExact)
	}
	return result
}
