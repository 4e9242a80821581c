package text

import ()

// maxTerm is the length of the longest term that Distance compares and Deletes expands.
const maxTerm = 48

// Distance is the number of letters to insert, delete, replace or swap with their neighbour to turn one term into
// the other (the restricted Damerau-Levenshtein distance). It returns most+1 for any distance above most.
func Distance(a, b string, most int) int {
	if len(a) > maxTerm || len(b) > maxTerm || len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	var rows [3][maxTerm + 1]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			row[j] = editCost(a, b, i, j, [3]*[maxTerm + 1]int{before, last, row})
			least = min(least, row[j])
		}
		if least > most {
			return most + 1
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], most+1)
}

// editCost is the cell of the distance matrix for the first i letters of a and the first j of b.
func editCost(a, b string, i, j int, rows [3]*[maxTerm + 1]int) int {
	before, last, row := rows[0], rows[1], rows[2]
	cost := 1
	if a[i-1] == b[j-1] {
		cost = 0
	}
	d := min(last[j]+1, row[j-1]+1, last[j-1]+cost)
	if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
		d = min(d, before[j-2]+1)
	}
	return d
}

// Deletes calls yield with the term and with what remains of it when up to depth letters are deleted. Two terms within
// depth edits of each other share one of these keys (the symmetric delete method). Some keys come more than once.
func Deletes(term string, depth int, yield func([]byte)) {
	var buf [maxTerm]byte
	if len(term) > maxTerm {
		return
	}
	dropLetters(buf[:copy(buf[:], term)], 0, depth, yield)
}

// dropLetters yields the letters and what remains when up to depth of those from an index on are deleted. It deletes
// from left to right, so that no set of positions comes twice.
func dropLetters(letters []byte, from, depth int, yield func([]byte)) {
	yield(letters)
	if depth == 0 || len(letters) < 3 {
		return
	}
	var buf [maxTerm]byte
	for i := from; i < len(letters); i++ {
		n := copy(buf[:], letters[:i])
		n += copy(buf[n:], letters[i+1:])
		dropLetters(buf[:n], i, depth-1, yield)
	}
}

// PhoneticKey is an approximate French pronunciation of a term: terms that sound alike have the same key. Numbers and
// terms of one or two letters have no key.
func PhoneticKey(term string) string {
	if len(term) < 3 || term[0] >= '0' && term[0] <= '9' {
		return ""
	}
	s := phoneticEncoder{in: term, out: make([]byte, 0, len(term))}
	for s.at < len(term) {
		s.encodeNext()
	}
	return string(trimSilent(s.out))
}

// phoneticEncoder turns the letters of a term into sounds.
type phoneticEncoder struct {
	in  string
	at  int
	out []byte
}

// spellings are groups of letters with one sound. Among groups with the same first letters the longest comes first.
var spellings = []struct{ spelt, said string }{
	{"eau", "o"}, {"au", "o"}, {"ain", "9"}, {"ein", "9"}, {"oin", "w9"}, {"ien", "i9"},
	{"aim", "9"}, {"ai", "e"}, {"ay", "e"}, {"ei", "e"}, {"ey", "e"}, {"oeu", "e"}, {"eu", "e"}, {"oe", "e"}, {"ou", "u"}, {"oy", "wa"}, {"oi", "wa"},
	{"ph", "f"}, {"sch", "x"}, {"ch", "x"}, {"sh", "x"}, {"gn", "n"}, {"gu", "g"}, {"qu", "k"}, {"ck", "k"}, {"sc", "s"}, {"th", "t"}, {"rh", "r"},
	{"ill", "i"}, {"tion", "sion"},
}

// encodeNext encodes the longest group of letters at the position, or one letter.
func (s *phoneticEncoder) encodeNext() {
	rest := s.in[s.at:]
	for _, g := range spellings {
		if len(rest) >= len(g.spelt) && rest[:len(g.spelt)] == g.spelt && s.appliesHere(g.spelt) {
			s.appendSound(g.said)
			s.at += len(g.spelt)
			return
		}
	}
	s.encodeLetter(rest)
	s.at++
}

// appliesHere reports whether a group has its sound before the letter that follows.
func (s *phoneticEncoder) appliesHere(spelt string) bool {
	next := s.peek(len(spelt))
	switch spelt {
	case "gu", "sc":
		return next == 'e' || next == 'i' || next == 'y'
	case "ain", "ein", "oin", "ien", "aim":
		return !isVowel(next) && next != 'n' && next != 'm'
	}
	return true
}

func (s *phoneticEncoder) peek(n int) byte {
	if s.at+n < len(s.in) {
		return s.in[s.at+n]
	}
	return 0
}

// encodeLetter encodes one letter. A vowel before n or m without a vowel after it is nasal.
func (s *phoneticEncoder) encodeLetter(rest string) {
	next := s.peek(1)
	switch c := rest[0]; c {
	case 'h':
	case 'c', 'g':
		s.appendSound(consonantSound(c, next))
	case 'q':
		s.appendSound("k")
	case 'y':
		s.appendSound("i")
	case 'z':
		s.appendSound("s")
	case 'w':
		s.appendSound("v")
	case 'x':
		s.appendSound("ks")
	case 'a', 'e', 'i', 'o', 'u':
		if (next == 'n' || next == 'm') && !isVowel(s.peek(2)) && s.peek(2) != 'n' && s.peek(2) != 'm' {
			s.appendSound(nasalSound(c))
			s.at++
			return
		}
		s.appendSound(string(c))
	default:
		s.appendSound(string(c))
	}
}

// consonantSound is the sound of c or g before a letter.
func consonantSound(c, next byte) string {
	soft := next == 'e' || next == 'i' || next == 'y'
	switch {
	case c == 'c' && soft:
		return "s"
	case c == 'c':
		return "k"
	case soft:
		return "j"
	}
	return "g"
}

// nasalSound is the sound of a nasal vowel, which the key writes as a digit.
func nasalSound(c byte) string {
	switch c {
	case 'a', 'e':
		return "8"
	case 'o':
		return "7"
	}
	return "9"
}

// appendSound appends sounds. A sound repeated at once counts once.
func (s *phoneticEncoder) appendSound(sound string) {
	for i := range len(sound) {
		if n := len(s.out); n == 0 || s.out[n-1] != sound[i] {
			s.out = append(s.out, sound[i])
		}
	}
}

func isVowel(c byte) bool {
	switch c {
	case 'a', 'e', 'i', 'o', 'u', 'y':
		return true
	}
	return false
}

// trimSilent drops the final letters that French does not pronounce.
func trimSilent(out []byte) []byte {
	for len(out) > 2 {
		switch out[len(out)-1] {
		case 'e', 's', 't', 'd', 'p':
			out = out[:len(out)-1]
		default:
			return out
		}
	}
	return out
}
