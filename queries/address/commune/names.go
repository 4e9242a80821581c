package commune

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"
	"strings"

	"lieudit/queries/address/text"
)

// nameIndex finds communes by name. Names are compared as their normalized terms: folded, abbreviations expanded, stop
// words left out. The name of a former commune finds the commune it is part of.
//
// A commune is identified by its rank: its position in the order of equally good answers, by population and then by code.
// A bit set of ranks, read from its beginning, is therefore a sorted list of answers.
type nameIndex struct {
	ranked       []*Commune
	rankOf       []uint32            // by index in the table; unranked for a commune that is never an answer
	population   []uint32            // of each rank
	byDepartment map[string][]uint32 // ranks by department

	text        string      // all names, each between two line feeds
	words       []wordStart // sorted by the text that begins there
	lengthStart [maxName + 2]uint32
	byLength    []lengthEntry // sorted by length; names of length n begin at lengthStart[n]
	letterMasks []uint64      // the letterMask of each entry of byLength
	bySound     []soundEntry  // names of one word, sorted by phonetic key

	whole         map[string][]*Commune  // communes, former ones too, by their whole normalized name
	divisionWords map[string][2][]string // the words of the name of each department and of its region, folded
	divisions     map[string][]string    // the departments in each department or region, by its folded name
	divisionEnds  map[string]bool        // the last words of those names
}

// wordStart is the position in the text where a word of a name begins. The flag startsName in rank says that the name
// begins there.
type wordStart struct{ at, rank uint32 }

const startsName = 1 << 31

// unranked is the rank of a commune that is never an answer, such as a former one.
const unranked = ^uint32(0)

// maxName is the length of the longest name that is compared letter by letter, as in text.Distance.
const maxName = 48

// lengthEntry is a name by its position in the text; its length follows from its position in byLength.
type lengthEntry struct{ at, rank uint32 }

// soundEntry is the phonetic key of a name of one word.
type soundEntry struct {
	sound string
	rank  uint32
}

// newNameIndex builds the index of a table.
func newNameIndex(t *Table) *nameIndex {
	n := &nameIndex{}
	n.rankCommunes(t)
	type named struct {
		name string
		rank uint32
	}
	all := make([]named, t.Len())
	size := 1
	for i := range t.communes {
		all[i] = named{normalizeName(t.communes[i].Name), n.rankOf[t.currentCommune(i)]}
		size += len(all[i].name) + 1
	}
	slices.SortFunc(all, func(x, y named) int { return cmp.Compare(len(x.name), len(y.name)) })
	var b strings.Builder
	b.Grow(size)
	b.WriteByte('\n')
	for _, c := range all {
		n.addName(uint32(b.Len()), c.name, c.rank)
		b.WriteString(c.name)
		b.WriteByte('\n')
	}
	n.text = b.String()
	n.sortEntries()
	n.indexWholeNames(t)
	return n
}

// rankCommunes ranks the communes that can be answers.
func (n *nameIndex) rankCommunes(t *Table) {
	var order []int
	n.rankOf, n.byDepartment = make([]uint32, t.Len()), map[string][]uint32{}
	for i := range t.communes {
		n.rankOf[i] = unranked
		if t.currentCommune(i) == i {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(t.communes[y].Population, t.communes[x].Population) })
	for rank, i := range order {
		c := &t.communes[i]
		n.rankOf[i] = uint32(rank)
		n.ranked, n.population = append(n.ranked, c), append(n.population, c.Population)
		n.byDepartment[c.Department()] = append(n.byDepartment[c.Department()], uint32(rank))
	}
}

// addName adds a name that stands at a position of the text. Names come in the order of their length.
func (n *nameIndex) addName(at uint32, name string, rank uint32) {
	start := wordStart{at, rank | startsName}
	for i := range len(name) {
		if i == 0 || name[i-1] == ' ' {
			n.words = append(n.words, start)
		}
		start = wordStart{at + uint32(i) + 1, rank}
	}
	if len(name) <= maxName {
		n.byLength, n.letterMasks = append(n.byLength, lengthEntry{at, rank}), append(n.letterMasks, letterMask(name))
		n.lengthStart[len(name)+1]++
	}
	if sound := phoneticKey(name); sound != "" {
		n.bySound = append(n.bySound, soundEntry{sound, rank})
	}
}

// sortEntries sorts the entries after the last name.
func (n *nameIndex) sortEntries() {
	for i := 1; i < len(n.lengthStart); i++ {
		n.lengthStart[i] += n.lengthStart[i-1]
	}
	slices.SortFunc(n.words, func(x, y wordStart) int { return strings.Compare(n.text[x.at:], n.text[y.at:]) })
	slices.SortFunc(n.bySound, func(x, y soundEntry) int { return cmp.Or(cmp.Compare(x.sound, y.sound), cmp.Compare(x.rank, y.rank)) })
	n.words, n.bySound = slices.Clip(n.words), slices.Clip(n.bySound)
}

// findPrefix returns the words from which a name continues with the line, and how many of them end with it. Those come
// first, because a line feed sorts before every letter.
func (n *nameIndex) findPrefix(line string) (found []wordStart, complete int) {
	from := sort.Search(len(n.words), func(i int) bool { return n.text[n.words[i].at:] >= line })
	found = n.words[from:]
	found = found[:sort.Search(len(found), func(i int) bool { return !strings.HasPrefix(n.text[found[i].at:], line) })]
	complete = sort.Search(len(found), func(i int) bool { return n.text[int(found[i].at)+len(line)] != '\n' })
	return found, complete
}

// scanWithin calls yield with the names within most edits of a line.
func (n *nameIndex) scanWithin(line string, most int, yield func(rank uint32, edits int)) {
	if len(line) > maxName {
		return
	}
	marks := letterMask(line)
	for size := max(len(line)-most, 0); size <= min(len(line)+most, maxName); size++ {
		for i := n.lengthStart[size]; i < n.lengthStart[size+1]; i++ {
			if bits.OnesCount64(n.letterMasks[i]&^marks) > most || bits.OnesCount64(marks&^n.letterMasks[i]) > most {
				continue
			}
			name := n.text[n.byLength[i].at:][:size]
			if d := text.Distance(line, name, most); d <= most {
				yield(n.byLength[i].rank, d)
			}
		}
	}
}

// scanSounding calls yield with the one-word names that sound like the line.
func (n *nameIndex) scanSounding(line string, yield func(rank uint32)) {
	sound := phoneticKey(line)
	if sound == "" {
		return
	}
	i := sort.Search(len(n.bySound), func(i int) bool { return n.bySound[i].sound >= sound })
	for ; i < len(n.bySound) && n.bySound[i].sound == sound; i++ {
		yield(n.bySound[i].rank)
	}
}

// letterMask has a bit for each letter of a name and a second bit for each letter that occurs twice. One edit adds at
// most one bit and removes at most one, so names whose masks differ by more need no comparison.
func letterMask(name string) (marks uint64) {
	for i := range len(name) {
		once := uint64(1) << (name[i] % 32)
		marks |= marks & once << 32
		marks |= once
	}
	return marks
}

// normalizeName joins the terms of a name without stop words.
func normalizeName(name string) string { return normalizeTerms(text.Terms(name)) }

func normalizeTerms(terms []text.Term) string {
	var words []string
	for _, t := range terms {
		if text.ClassOf(t.Text) != text.StopWord {
			words = append(words, t.Text)
		}
	}
	if len(words) == 0 {
		for _, t := range terms {
			words = append(words, t.Text)
		}
	}
	return strings.Join(words, " ")
}

// indexWholeNames adds the names of the communes, and those of their departments and regions.
func (n *nameIndex) indexWholeNames(t *Table) {
	n.whole, n.divisionWords = make(map[string][]*Commune, t.Len()), map[string][2][]string{}
	n.divisions, n.divisionEnds = map[string][]string{}, map[string]bool{}
	for i := range t.communes {
		c := &t.communes[i]
		name := normalizeName(c.Name)
		n.whole[name] = append(n.whole[name], c)
		if code := c.Department(); n.divisionWords[code][0] == nil {
			department, _ := Department(code)
			region, _ := RegionOf(code)
			n.divisionWords[code] = [2][]string{strings.Fields(text.Fold(department.Name)), strings.Fields(text.Fold(region.Name))}
			n.addDivision(code)
		}
	}
}

// addDivision adds a department to those of its own name and of the name of its region. An article may be left out: Réunion.
func (n *nameIndex) addDivision(code string) {
	for _, words := range n.divisionWords[code] {
		for len(words) > 0 {
			name := strings.Join(words, " ")
			if !slices.Contains(n.divisions[name], code) {
				n.divisions[name] = append(n.divisions[name], code)
			}
			n.divisionEnds[words[len(words)-1]] = true
			if text.ClassOf(words[0]) != text.StopWord {
				break
			}
			words = words[1:]
		}
	}
}

// Named returns the communes whose whole name consists of some terms, stop words aside. Former ones are among them.
func (t *Table) Named(terms []text.Term) []*Commune { return t.names().whole[normalizeTerms(terms)] }

// DivisionWords returns the folded words of the names of a department and of its region.
func (t *Table) DivisionWords(department string) [2][]string {
	return t.names().divisionWords[department]
}

// EndsDivision reports whether the name of a department or region ends with a folded word.
func (t *Table) EndsDivision(word string) bool { return t.names().divisionEnds[word] }

// DivisionsAtEnd returns the departments in the department or region that the last words name, and the number of these words.
// The words are folded. The longest name wins.
func (t *Table) DivisionsAtEnd(words []string) (departments []string, length int) {
	n := t.names()
	for length = min(len(words), mostDivisionWords); length > 0; length-- {
		if departments = n.divisions[strings.Join(words[len(words)-length:], " ")]; len(departments) > 0 {
			return departments, length
		}
	}
	return nil, 0
}

// mostDivisionWords is the most words that the name of a department or region has: Provence-Alpes-Côte d'Azur.
const mostDivisionWords = 6

// phoneticKey is the phonetic key of a name of one word, "" for others.
func phoneticKey(name string) string {
	if strings.Contains(name, " ") {
		return ""
	}
	return text.PhoneticKey(name)
}
