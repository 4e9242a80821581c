package text

// Sound is how a French speaker would say a term, roughly, in a spelling of its own: words that sound alike have the
// same sound. Numbers, and words of one or two letters, have none.
func Sound(term string) string {
	if len(term) < 3 || term[0] >= '0' && term[0] <= '9' {
		return ""
	}
	s := speaker{in: term, out: make([]byte, 0, len(term))}
	for s.at < len(term) {
		s.step()
	}
	return string(trimSilent(s.out))
}

type speaker struct {
	in  string
	at  int
	out []byte
}

// groups are the spellings of several letters, longest first for each beginning.
var groups = []struct{ spelt, said string }{
	{"eau", "o"}, {"au", "o"}, {"ain", "9"}, {"ein", "9"}, {"oin", "w9"}, {"ien", "i9"},
	{"aim", "9"}, {"ai", "e"}, {"ay", "e"}, {"ei", "e"}, {"ey", "e"}, {"oeu", "e"}, {"eu", "e"}, {"oe", "e"}, {"ou", "u"}, {"oy", "wa"}, {"oi", "wa"},
	{"ph", "f"}, {"sch", "x"}, {"ch", "x"}, {"sh", "x"}, {"gn", "n"}, {"gu", "g"}, {"qu", "k"}, {"ck", "k"}, {"sc", "s"}, {"th", "t"}, {"rh", "r"},
	{"ill", "i"}, {"tion", "sion"},
}

func (s *speaker) step() {
	rest := s.in[s.at:]
	for _, g := range groups {
		if len(rest) >= len(g.spelt) && rest[:len(g.spelt)] == g.spelt && s.applies(g.spelt) {
			s.say(g.said)
			s.at += len(g.spelt)
			return
		}
	}
	s.letter(rest)
	s.at++
}

// applies says whether a group keeps its sound before what follows it.
func (s *speaker) applies(spelt string) bool {
	next := s.peek(len(spelt))
	switch spelt {
	case "gu", "sc":
		return next == 'e' || next == 'i' || next == 'y'
	case "ain", "ein", "oin", "ien", "aim":
		return !vowel(next) && next != 'n' && next != 'm'
	}
	return true
}

func (s *speaker) peek(n int) byte {
	if s.at+n < len(s.in) {
		return s.in[s.at+n]
	}
	return 0
}

func (s *speaker) letter(rest string) {
	next := s.peek(1)
	switch c := rest[0]; c {
	case 'h':
	case 'c', 'g':
		s.say(hardOrSoft(c, next))
	case 'q':
		s.say("k")
	case 'y':
		s.say("i")
	case 'z':
		s.say("s")
	case 'w':
		s.say("v")
	case 'x':
		s.say("ks")
	case 'a', 'e', 'i', 'o', 'u':
		if (next == 'n' || next == 'm') && !vowel(s.peek(2)) && s.peek(2) != 'n' && s.peek(2) != 'm' {
			s.say(nasal(c))
			s.at++
			return
		}
		s.say(string(c))
	default:
		s.say(string(c))
	}
}

func hardOrSoft(c, next byte) string {
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

func nasal(c byte) string {
	switch c {
	case 'a', 'e':
		return "8"
	case 'o':
		return "7"
	}
	return "9"
}

// say appends a sound; the same sound twice is one.
func (s *speaker) say(said string) {
	for i := range len(said) {
		if n := len(s.out); n == 0 || s.out[n-1] != said[i] {
			s.out = append(s.out, said[i])
		}
	}
}

func vowel(c byte) bool {
	switch c {
	case 'a', 'e', 'i', 'o', 'u', 'y':
		return true
	}
	return false
}

// trimSilent cuts the letters that end French words unheard.
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
