package commune

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"sync"
)

const postcodeLength = 5

// Table answers by code, postcode, parent and name. It is safe for concurrent use.
type Table struct {
	communes []Commune
	children []int32 // those with a parent, ordered by it
	posts    []post  // ordered by postcode
	names    func() *names
}

// post is one postcode of one commune.
type post struct {
	code    [postcodeLength]byte
	commune int32
}

// Load is the program's table, decoded at the first call.
var Load = sync.OnceValues(func() (*Table, error) { return decode(packed) })

// index makes the look-ups of a table whose communes are complete.
func (t *Table) index() {
	for i := range t.communes {
		c := &t.communes[i]
		if c.Parent != "" {
			t.children = append(t.children, int32(i))
		}
		for p := c.postcodes; len(p) >= postcodeLength; p = p[postcodeLength:] {
			t.posts = append(t.posts, post{[postcodeLength]byte([]byte(p[:postcodeLength])), int32(i)})
		}
	}
	slices.SortStableFunc(t.children, func(a, b int32) int {
		return cmp.Compare(t.communes[a].Parent, t.communes[b].Parent)
	})
	slices.SortStableFunc(t.posts, func(a, b post) int { return slices.Compare(a.code[:], b.code[:]) })
	t.children, t.posts = slices.Clip(t.children), slices.Clip(t.posts)
	t.names = sync.OnceValue(func() *names { return indexNames(t) })
}

// Len is how many entries there are.
func (t *Table) Len() int { return len(t.communes) }

// ByCode is the commune with an INSEE code, the current one where a delegated one shares it.
func (t *Table) ByCode(code string) (*Commune, bool) {
	i, ok := t.at(code)
	if !ok {
		return nil, false
	}
	return &t.communes[i], true
}

// at is where the commune with a code stands.
func (t *Table) at(code string) (int, bool) {
	i := sort.Search(len(t.communes), func(i int) bool { return t.communes[i].Code >= code })
	return i, i < len(t.communes) && t.communes[i].Code == code
}

// ByPostcode are the communes a postcode serves, by code.
func (t *Table) ByPostcode(postcode string) (found []*Commune) {
	for _, p := range t.postsOf(postcode) {
		found = append(found, &t.communes[p.commune])
	}
	return found
}

// postsOf are the communes of a postcode, by code.
func (t *Table) postsOf(postcode string) []post {
	from := sort.Search(len(t.posts), func(i int) bool { return string(t.posts[i].code[:]) >= postcode })
	to := sort.Search(len(t.posts), func(i int) bool { return string(t.posts[i].code[:]) > postcode })
	return t.posts[from:to]
}

// Parent is the commune that one is part of.
func (t *Table) Parent(c *Commune) (*Commune, bool) {
	if c.Parent == "" {
		return nil, false
	}
	return t.ByCode(c.Parent)
}

// Children are the delegated and associated communes and the arrondissements of a commune, by code.
func (t *Table) Children(code string) (found []*Commune) {
	from, _ := slices.BinarySearchFunc(t.children, code, func(i int32, code string) int { return strings.Compare(t.communes[i].Parent, code) })
	for _, i := range t.children[from:] {
		if t.communes[i].Parent != code {
			break
		}
		found = append(found, &t.communes[i])
	}
	return found
}

// Around are the communes, former ones among them, whose bounds hold a position, by code. Bounds of neighbours overlap.
func (t *Table) Around(lon, lat float64) (found []*Commune) {
	for i := range t.communes {
		c := &t.communes[i]
		if b := &c.Bounds; b.West <= lon && lon <= b.East && b.South <= lat && lat <= b.North && c.Located() {
			found = append(found, c)
		}
	}
	return found
}
