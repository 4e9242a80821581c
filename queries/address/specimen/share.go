package specimen

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"lieudit/queries/address/commune"
)

const (
	// village is what a commune weighs beside its inhabitants: small ones have more addresses a head.
	village = 60
	// least is how many rows a commune gets on average when there are too few for all communes.
	least = 100
)

// share is how many rows a commune gets.
type share struct {
	commune *commune.Commune
	weight  float64
	rows    int
}

// shares spreads the rows over communes, by code, in proportion to their weight.
func shares(t *commune.Table, o Order) []share {
	all := habitable(t)
	if some := max(1, o.Addresses/least); some < len(all) {
		all = draw(all, some, o.Seed)
	}
	total, sum, given := 0.0, 0.0, 0
	for _, s := range all {
		total += s.weight
	}
	for i := range all {
		sum += all[i].weight
		upTo := int(math.Round(float64(o.Addresses) * sum / total))
		all[i].rows, given = upTo-given, upTo
	}
	return all
}

// habitable are the communes that have addresses: current ones, with the arrondissements in the place of their cities.
func habitable(t *commune.Table) (all []share) {
	for c := range t.All() {
		if c.Kind != commune.Current && c.Kind != commune.Arrondissement || !c.Located() || len(c.Postcodes()) == 0 {
			continue
		}
		parts := t.Children(c.Code)
		if len(parts) > 0 && parts[0].Kind == commune.Arrondissement {
			continue
		}
		all = append(all, share{commune: c, weight: float64(c.Population) + village})
	}
	return all
}

// draw picks some communes at random, the heavy ones more likely, and leaves them in order.
func draw(all []share, some int, seed uint64) []share {
	type lot struct {
		at  int
		key float64
	}
	r := rand.New(rand.NewPCG(seed, 0))
	lots := make([]lot, len(all))
	for i := range all {
		lots[i] = lot{i, r.ExpFloat64() / all[i].weight}
	}
	slices.SortFunc(lots, func(a, b lot) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.at, b.at)) })
	lots = lots[:some]
	slices.SortFunc(lots, func(a, b lot) int { return cmp.Compare(a.at, b.at) })
	drawn := make([]share, some)
	for i, l := range lots {
		drawn[i] = all[l.at]
	}
	return drawn
}
