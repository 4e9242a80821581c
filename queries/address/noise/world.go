package noise

import (
	"fmt"
	"math/rand/v2"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/text"
)

// World is what noise may draw from.
type World struct {
	postcodes []string
	numbers   map[[2]string]map[string]bool // of a commune and a folded street
	Unused    int                           // numbers from here on are no street's, where not all rows are known
}

// WorldOf is that of all rows of a vintage.
func WorldOf(rows []ban.Row) World {
	w := World{numbers: map[[2]string]map[string]bool{}}
	seen := map[string]bool{}
	for i := range rows {
		r := &rows[i]
		if !seen[r.CodePostal] {
			seen[r.CodePostal] = true
			w.postcodes = append(w.postcodes, r.CodePostal)
		}
		key := [2]string{r.CodeInsee, text.Fold(r.Voie)}
		if w.numbers[key] == nil {
			w.numbers[key] = map[string]bool{}
		}
		w.numbers[key][fmt.Sprint(r.Numero)] = true
	}
	return w
}

// Draw makes so many questions of one kind about the rows, as far as it applies to them: the same ones for the same seed.
func (k Kind) Draw(w World, rows []ban.Row, seed uint64, n int) (all []Question) {
	rng := rand.New(rand.NewPCG(1, seed))
	for try := 0; len(all) < n && try < 40*n; try++ {
		q := Of(&rows[rng.IntN(len(rows))])
		if k.Apply(rng, w, &q) {
			all = append(all, q)
		}
	}
	return all
}
