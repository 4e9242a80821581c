package meili

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"lieudit/queries/places/finder"
)

// markLetters is how long the mark is that an account's words bear.
const markLetters = 8

// digest stands for a text in filters: letters alone, so that nothing anybody wrote is ever part of a filter.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	letters := make([]byte, 2*markLetters)
	for i := range letters {
		letters[i] = 'a' + sum[i]%26
	}
	return string(letters)
}

// vocabulary writes an account's words. They bear a mark of the account, so that no account's words are among those the
// server considers for another's: it considers only so many, of all there are in an index. The mark follows the first letter, as
// the server has a typo in the first count for two.
type vocabulary struct{ mark string }

func vocabularyOf(account string) vocabulary { return vocabulary{digest(account)[:markLetters]} }

// longestWord is the longest the server keeps, save some.
const longestWord = 240

// word is a word in the index.
func (v vocabulary) word(w string) string {
	var b strings.Builder
	for i, r := range w {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			b.WriteByte(byte(r))
		} else {
			writeLetter(&b, r)
		}
		if i == 0 {
			b.WriteString(v.mark)
		}
		if b.Len() > longestWord {
			break
		}
	}
	return b.String()
}

// writeLetter writes a letter of another script in four of Latin: the server cuts such words in its own way otherwise.
func writeLetter(b *strings.Builder, r rune) {
	const letters = "abcdefghijklmnopqrstuvwxyz012345"
	for shift := 15; shift >= 0; shift -= 5 {
		b.WriteByte(letters[r>>shift&31])
	}
}

// start is the beginning of a word as a word of its own. Of all the words that begin with a few letters the server considers
// a thousand, so those of the shortest beginnings are found by them.
func (v vocabulary) start(w string) string { return v.word(w) + "0" }

// starts says how many letters the longest beginning has that is a word of its own: of numbers, which bear no typos, all but
// the longest.
func starts(w string) int {
	switch {
	case '0' <= w[0] && w[0] <= '9':
		return 12
	case plain(w):
		return 2
	}
	return 3
}

// plain says whether a word is in Latin letters.
func plain(w string) bool { return strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") == "" }

// text is what the texts of a site are in the index: no word is the first, so that none is better for being it.
func (v vocabulary) text(texts ...string) string {
	words, known := []string{"0"}, map[string]bool{}
	add := func(w string) {
		if !known[w] {
			known[w] = true
			words = append(words, w)
		}
	}
	for _, text := range texts {
		finder.Terms(text, func(w string) {
			add(v.word(w))
			letters := 0
			for i, r := range w {
				if letters++; letters > starts(w) {
					break
				}
				add(v.start(w[:i+utf8.RuneLen(r)]))
			}
		})
	}
	return strings.Join(words, " ")
}

// asked is a question's words as the server is asked for them. Quoted ones are to be there as they are.
func (v vocabulary) asked(words []finder.Word, meant uint) string {
	var all []string
	for i, w := range words {
		switch {
		case w.Means != nil && meant&(1<<i) != 0:
			for _, m := range w.Means {
				all = append(all, quoted(v.word(m)))
			}
		case w.Last && utf8.RuneCountInString(w.Text) <= starts(w.Text):
			all = append(all, quoted(v.start(w.Text)))
		case w.Last || finder.Allowed(w.Text) > 0:
			all = append(all, v.word(w.Text))
		default:
			all = append(all, quoted(v.word(w.Text)))
		}
	}
	asked := strings.Join(all, " ")
	if n := len(words); words[n-1].Means != nil && meant&(1<<(n-1)) != 0 {
		asked += " " // or what is before would be a beginning
	}
	return asked
}

func quoted(w string) string { return `"` + w + `"` }

// external is an external id in the index, whatever its case; that of a beginning begins it.
func (v vocabulary) external(id string) string {
	return v.mark + hex.EncodeToString([]byte(strings.ToLower(id)))
}

const (
	keys      = 4   // attributes that a place in the order by name takes
	keyLength = 440 // of one of them; the server cuts at 479
	beyond    = "~" // comes after all that is written here
)

var ordered = base32.HexEncoding.WithPadding(base32.NoPadding)

// key is a place in the order by name, in pieces that are compared one after the other as texts.
func (v vocabulary) key(p finder.Place) [keys]string {
	named := "0"
	if p.Name == "" {
		named = "1"
	}
	whole := strings.Join([]string{named + p.Name, p.ExternalID, p.Referential}, "\x00")
	rest := strings.ToLower(ordered.EncodeToString([]byte(whole)))
	var pieces [keys]string
	for i := range pieces {
		n := min(keyLength, len(rest))
		pieces[i], rest = v.mark+rest[:n], rest[n:]
	}
	return pieces
}
