package vintage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/text"
)

// gathered is a street with its rows, or a locality with one.
type gathered struct {
	key, name string
	locality  bool
	rows      []ban.Row
}

// gather sorts the rows of a commune into streets. It depends on what the rows are, not on how they came.
func gather(rows []ban.Row) (streets []gathered, duplicates int) {
	index := map[[2]string]int{}
	for i := range rows {
		key := [2]string{streetKey(&rows[i]), rows[i].Voie}
		at, known := index[key]
		if !known {
			at = len(streets)
			index[key] = at
			streets = append(streets, gathered{key: key[0], name: key[1], locality: rows[i].Kind == ban.Locality})
		}
		streets[at].rows = append(streets[at].rows, rows[i])
	}
	slices.SortFunc(streets, func(x, y gathered) int { return cmp.Or(cmp.Compare(x.key, y.key), cmp.Compare(x.name, y.name)) })
	for i := range streets {
		s := &streets[i]
		slices.SortFunc(s.rows, compareRows)
		before := len(s.rows)
		s.rows = slices.CompactFunc(s.rows, func(x, y ban.Row) bool { return x.ID == y.ID })
		if s.locality {
			s.rows = s.rows[:1]
		}
		duplicates += before - len(s.rows)
	}
	return streets, duplicates
}

// compareRows is a total order: rows that compare equal are equal in all that is kept.
func compareRows(x, y ban.Row) int {
	if c := cmp.Or(cmp.Compare(x.Numero, y.Numero), cmp.Compare(x.Rep, y.Rep), cmp.Compare(x.ID, y.ID)); c != 0 {
		return c
	}
	for i, f := range fields(&x) {
		if c := cmp.Compare(*f, *fields(&y)[i]); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(x.Lon, y.Lon), cmp.Compare(x.Lat, y.Lat), cmp.Compare(x.X, y.X), cmp.Compare(x.Y, y.Y),
		slices.Compare(x.Parcelles, y.Parcelles))
}

// streetKey is the part of an id that names the street: what stands before the number.
func streetKey(r *ban.Row) string {
	if r.Kind == ban.Locality {
		return r.ID
	}
	if key, ok := regularKey(r); ok {
		return key
	}
	first, rest, _ := strings.Cut(r.ID, "_")
	if second, _, ok := strings.Cut(rest, "_"); ok {
		return first + "_" + second
	}
	return r.CodeInsee + "_" + strings.ReplaceAll(text.Fold(r.Voie), " ", "-")
}

// regularKey is the street's key when number and repetition index follow it the usual way.
func regularKey(r *ban.Row) (string, bool) {
	key, ok := r.ID, true
	if r.Rep != "" {
		key, ok = strings.CutSuffix(key, "_"+r.Rep)
	}
	if !ok || len(key) < 6 {
		return "", false
	}
	tail := key[len(key)-6:]
	key = key[:len(key)-6]
	ok = tail == fmt.Sprintf("_%05d", r.Numero) && strings.Count(key, "_") == 1
	return key, ok
}

// usual is the value that most rows have; of as many, the first in order.
func usual(streets []gathered, of func(*ban.Row) string) string {
	counts := map[string]int{}
	best := ""
	for i := range streets {
		for j := range streets[i].rows {
			counts[of(&streets[i].rows[j])]++
		}
	}
	for value, n := range counts {
		if c := cmp.Compare(n, counts[best]); c > 0 || c == 0 && value < best || best == "" {
			best = value
		}
	}
	return best
}

// centre is the position of the row nearest to the middle of all.
func centre(rows []ban.Row) (p Point) {
	var lon, lat float64
	for i := range rows {
		lon, lat = lon+rows[i].Lon, lat+rows[i].Lat
	}
	lon, lat = lon/float64(len(rows)), lat/float64(len(rows))
	least := -1.0
	for i := range rows {
		dx, dy := rows[i].Lon-lon, rows[i].Lat-lat
		if d := dx*dx + dy*dy; least < 0 || d < least {
			least, p = d, pointOf(&rows[i])
		}
	}
	return p
}

func pointOf(r *ban.Row) Point {
	return Point{fixed(r.Lon * 1e6), fixed(r.Lat * 1e6), fixed(r.X * 100), fixed(r.Y * 100)}
}
