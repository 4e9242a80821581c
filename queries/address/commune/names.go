package commune

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"
	"strings"

	"lieudit/queries/address/text"
)

// names finds communes by their names. Names are compared as their bare terms: folded, abbreviations written out, links
// left out. A commune is found by the names of the former ones that are part of it, too.
//
// Communes are known here by their rank: the place in the order of answers that fit as well, which is by population and
// then by code. So a set of ranks, read from its beginning, is a sorted list of answers.
type names struct {
	ranked     []*Commune
	rankOf     []uint32            // of each commune of the table; unranked where it never is an answer
	population []uint32            // by rank
	members    map[string][]uint32 // the ranks of each department

	text  string      // all names, each between two line ends
	words []wordStart // sorted by the text from there on
	sizes [maxName + 2]uint32
	alike []alikeName // sorted by length; those of length n begin at sizes[n]
	marks []uint64    // the marks of each
	said  []saidName  // names of one word, sorted by sound
}

// wordStart is where a word of a name begins in the text. The highest bit of rank says that the name begins there.
type wordStart struct{ at, rank uint32 }

const startsName = 1 << 31

// unranked is the rank of a commune that is no answer, as a former one.
const unranked = ^uint32(0)

// maxName is the length of the longest name that is compared letter by letter; text.Distance compares no longer ones.
const maxName = 48

type alikeName struct{ at, rank uint32 }

type saidName struct {
	sound string
	rank  uint32
}

// indexNames makes the index of a table.
func indexNames(t *Table) *names {
	n := &names{}
	n.rank(t)
	type named struct {
		name string
		rank uint32
	}
	all := make([]named, t.Len())
	size := 1
	for i := range t.communes {
		all[i] = named{bareName(t.communes[i].Name), n.rankOf[t.answerFor(i)]}
		size += len(all[i].name) + 1
	}
	slices.SortFunc(all, func(x, y named) int { return cmp.Compare(len(x.name), len(y.name)) })
	var b strings.Builder
	b.Grow(size)
	b.WriteByte('\n')
	for _, c := range all {
		n.add(uint32(b.Len()), c.name, c.rank)
		b.WriteString(c.name)
		b.WriteByte('\n')
	}
	n.text = b.String()
	n.finish()
	return n
}

// rank puts the communes that are answers into their order.
func (n *names) rank(t *Table) {
	var order []int
	n.rankOf, n.members = make([]uint32, t.Len()), map[string][]uint32{}
	for i := range t.communes {
		n.rankOf[i] = unranked
		if t.answerFor(i) == i {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(t.communes[y].Population, t.communes[x].Population) })
	for rank, i := range order {
		c := &t.communes[i]
		n.rankOf[i] = uint32(rank)
		n.ranked, n.population = append(n.ranked, c), append(n.population, c.Population)
		n.members[c.Department()] = append(n.members[c.Department()], uint32(rank))
	}
}

// add takes in a name that will stand there in the text. Names come by their length.
func (n *names) add(at uint32, name string, rank uint32) {
	start := wordStart{at, rank | startsName}
	for i := range len(name) {
		if i == 0 || name[i-1] == ' ' {
			n.words = append(n.words, start)
		}
		start = wordStart{at + uint32(i) + 1, rank}
	}
	if len(name) <= maxName {
		n.alike, n.marks = append(n.alike, alikeName{at, rank}), append(n.marks, marksOf(name))
		n.sizes[len(name)+1]++
	}
	if sound := soundOf(name); sound != "" {
		n.said = append(n.said, saidName{sound, rank})
	}
}

// finish sorts what was taken in.
func (n *names) finish() {
	for i := 1; i < len(n.sizes); i++ {
		n.sizes[i] += n.sizes[i-1]
	}
	slices.SortFunc(n.words, func(x, y wordStart) int { return strings.Compare(n.text[x.at:], n.text[y.at:]) })
	slices.SortFunc(n.said, func(x, y saidName) int { return cmp.Or(cmp.Compare(x.sound, y.sound), cmp.Compare(x.rank, y.rank)) })
	n.words, n.said = slices.Clip(n.words), slices.Clip(n.said)
}

// begunBy is the range of the words from which on names go on like this, and how many of them end there. These come
// first, because a line end sorts before all else.
func (n *names) begunBy(line string) (found []wordStart, whole int) {
	from := sort.Search(len(n.words), func(i int) bool { return n.text[n.words[i].at:] >= line })
	found = n.words[from:]
	found = found[:sort.Search(len(found), func(i int) bool { return !strings.HasPrefix(n.text[found[i].at:], line) })]
	whole = sort.Search(len(found), func(i int) bool { return n.text[int(found[i].at)+len(line)] != '\n' })
	return found, whole
}

// within calls yield with the names that are some edits from a line, at most so many.
func (n *names) within(line string, most int, yield func(rank uint32, edits int)) {
	if len(line) > maxName {
		return
	}
	marks := marksOf(line)
	for size := max(len(line)-most, 0); size <= min(len(line)+most, maxName); size++ {
		for i := n.sizes[size]; i < n.sizes[size+1]; i++ {
			if bits.OnesCount64(n.marks[i]&^marks) > most || bits.OnesCount64(marks&^n.marks[i]) > most {
				continue
			}
			name := n.text[n.alike[i].at:][:size]
			if d := text.Distance(line, name, most); d <= most {
				yield(n.alike[i].rank, d)
			}
		}
	}
}

// sounding calls yield with the names of one word that sound like a line.
func (n *names) sounding(line string, yield func(rank uint32)) {
	sound := soundOf(line)
	if sound == "" {
		return
	}
	i := sort.Search(len(n.said), func(i int) bool { return n.said[i].sound >= sound })
	for ; i < len(n.said) && n.said[i].sound == sound; i++ {
		yield(n.said[i].rank)
	}
}

// marksOf has a bit for each letter of a name and one more for those that stand twice in it. An edit adds one mark at
// most and takes one away at most, so that names whose marks differ by more are not compared.
func marksOf(name string) (marks uint64) {
	for i := range len(name) {
		once := uint64(1) << (name[i] % 32)
		marks |= marks & once << 32
		marks |= once
	}
	return marks
}

// bareName is a name's terms, links left out.
func bareName(name string) string {
	var words []string
	terms := text.Terms(name)
	for _, t := range terms {
		if text.ClassOf(t.Text) != text.Link {
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

// soundOf is the sound of a name of one word.
func soundOf(name string) string {
	if strings.Contains(name, " ") {
		return ""
	}
	return text.Sound(name)
}
