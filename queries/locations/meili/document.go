package meili

import (
	"encoding/base32"
	"encoding/hex"
	"math"
	"strings"
	"unicode/utf8"

	"lieudit/queries/locations/search"
	"lieudit/schemas/locations"
	"lieudit/schemas/siteindex"
	"lieudit/schemas/table"
)

// NewDocument makes the document of a row that is from a generation. It fails where the row's content cannot be read. It is
// here and not with the code that fills the index, since documents and queries must encode words alike.
func NewDocument(generation string, r table.Site) (siteindex.Document, error) {
	c, err := locations.SiteFromRow(r)
	if err != nil {
		return siteindex.Document{}, err
	}
	v := newWordEncoder(r.Account)
	var texts [search.InAddress + 1][]string
	search.VisitTexts(c.Name, c.Tags, c.Address, func(text string, in search.Field) { texts[in] = append(texts[in], text) })
	name := search.FoldName(c.Name)
	key := v.encodeSortKey(search.SortKey{Name: name, ExternalID: r.ExternalID, Referential: r.Referential})
	d := siteindex.Document{
		ID: siteindex.DocumentID(r.ID), Generation: siteindex.HashText(generation), Account: siteindex.HashText(r.Account), Referential: siteindex.HashText(r.Referential), Active: r.Active,
		ExternalID: v.encodeExternalID(r.ExternalID), FoldedName: name,
		Name: v.encodeTexts(texts[search.InName]), Town: v.encodeTexts(texts[search.InTown]), Address: v.encodeTexts(texts[search.InAddress]),
		SortKey0: key[0], SortKey1: key[1], SortKey2: key[2], SortKey3: key[3],
	}
	for _, tag := range c.Tags {
		d.Tags = append(d.Tags, siteindex.HashText(search.FoldTag(tag)))
	}
	if c.Lat != nil && c.Lon != nil && math.Abs(*c.Lat) <= 90 && math.Abs(*c.Lon) <= 180 {
		d.Lat, d.Lon = c.Lat, c.Lon
	}
	return d, nil
}

// wordEncoder writes an account's words. The server considers only so many of the words in an index that are like a
// typed one; so each word bears a mark of its account, and no word of another account is like it. The mark follows the
// first letter, as the server counts a typo in the first letter twice.
type wordEncoder struct{ accountMark string }

func newWordEncoder(account string) wordEncoder {
	return wordEncoder{siteindex.HashText(account)[:siteindex.AccountMarkLetters]}
}

// maxWordBytes is a little less than the longest word that the server keeps. Longer words are alike for the server from
// there on; verifyRow tells them apart.
const maxWordBytes = 240

// encodeWord is a word as the index has it: letters from a to z and digits. With the mark qrstuvwx, mende is mqrstuvwxende.
// A word is cut soon after maxWordBytes.
func (v wordEncoder) encodeWord(w string) string {
	var b strings.Builder
	for i, r := range w {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			b.WriteByte(byte(r))
		} else {
			writeLetter(&b, r)
		}
		if i == 0 {
			b.WriteString(v.accountMark)
		}
		if b.Len() > maxWordBytes {
			break
		}
	}
	return b.String()
}

// writeLetter writes a letter of another script as four Latin letters and digits. The server would cut such words in
// its own way.
func writeLetter(b *strings.Builder, r rune) {
	const letters = "abcdefghijklmnopqrstuvwxyz012345"
	for shift := 15; shift >= 0; shift -= 5 {
		b.WriteByte(letters[r>>shift&31])
	}
}

// encodePrefix is the beginning of a word as a word of its own. The server considers at most a thousand words that
// begin with the letters typed, so words are found by these where few letters were typed. It takes none but the last word of a
// text for a beginning, so the words before that are found by these too.
func (v wordEncoder) encodePrefix(w string) string { return v.encodeWord(w) + "0" }

// encodeEarlyPrefix is what a word before the last one is found by as a beginning. Of a long word it is the first letters, which other
// words may begin with too: verifyRow tells them apart.
func (v wordEncoder) encodeEarlyPrefix(w string) string {
	return v.encodePrefix(firstLetters(w, maxIndexedPrefix(w)))
}

// firstLetters is the beginning of a word, of at most n letters.
func firstLetters(w string, n int) string {
	for i := range w {
		if n == 0 {
			return w[:i]
		}
		n--
	}
	return w
}

// maxIndexedPrefix is how many letters the longest beginning has that is indexed as a word of its own.
func maxIndexedPrefix(w string) int { return max(5, maxPrefixLetters(w)) }

// maxPrefixLetters is how many letters the last word of a text has at most where it is found as such a beginning, without typos.
// Numbers are found with no typos, so it covers all but the longest numbers.
func maxPrefixLetters(w string) int {
	switch {
	case '0' <= w[0] && w[0] <= '9':
		return 12
	case isLatin(w):
		return 2
	}
	return 3
}

// isLatin reports whether a word is in Latin letters. Words are folded, so they have no accents and no capitals.
func isLatin(w string) bool { return strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") == "" }

// encodeTexts are the words of texts as the index has them. The first is none of theirs, so that none scores higher for
// being the first.
func (v wordEncoder) encodeTexts(texts []string) string {
	words, known := []string{"0"}, map[string]bool{}
	add := func(w string) {
		if !known[w] {
			known[w] = true
			words = append(words, w)
		}
	}
	for _, text := range texts {
		search.VisitTerms(text, func(w string) {
			add(v.encodeWord(w))
			letters := 0
			for i, r := range w {
				if letters++; letters > maxIndexedPrefix(w) {
					break
				}
				add(v.encodePrefix(w[:i+utf8.RuneLen(r)]))
			}
		})
	}
	return strings.Join(words, " ")
}

// encodeQuery is a query's words as the server is sent them. Quoted words must be there as they are. replaced has a bit
// for each word that is replaced with what it stands for, or before the last one with the beginnings of words.
func (v wordEncoder) encodeQuery(words []search.Word, replaced uint) string {
	var all []string
	for i, w := range words {
		isLast := i == len(words)-1
		switch isReplaced := replaced&(1<<i) != 0; {
		case isReplaced && w.Expansions != nil:
			for _, m := range w.Expansions {
				all = append(all, siteindex.Quote(v.encodeWord(m)))
			}
		case isReplaced:
			all = append(all, siteindex.Quote(v.encodeEarlyPrefix(w.Text)))
		case isLast && utf8.RuneCountInString(w.Text) <= maxPrefixLetters(w.Text):
			all = append(all, siteindex.Quote(v.encodePrefix(w.Text)))
		case isLast || search.AllowedTypos(w.Text) > 0:
			all = append(all, v.encodeWord(w.Text))
		default:
			all = append(all, siteindex.Quote(v.encodeWord(w.Text)))
		}
	}
	encoded := strings.Join(all, " ")
	if n := len(words); words[n-1].Expansions != nil && replaced&(1<<(n-1)) != 0 {
		encoded += " " // else the server would take the last word for a beginning
	}
	return encoded
}

// encodeExternalID is an external id as the index has it, whatever its case. That of a beginning is a beginning of it.
func (v wordEncoder) encodeExternalID(id string) string {
	return v.accountMark + hex.EncodeToString([]byte(strings.ToLower(id)))
}

const (
	sortKeyParts      = 4   // attributes that a sort key takes
	sortKeyPartLength = 440 // bytes of one of them; the server cuts at 479
	rangeEnd          = "~" // sorts after all encoded texts
)

// sortableEncoding keeps the order of bytes: its letters are in the order of ASCII.
var sortableEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)

// encodeSortKey is a sort key of search.ByName, in parts that are compared one after the other as texts. A part that
// nothing is left for is the mark alone. The flag in front sorts sites without a name last.
func (v wordEncoder) encodeSortKey(p search.SortKey) [sortKeyParts]string {
	nameFlag := "0"
	if p.Name == "" {
		nameFlag = "1"
	}
	joined := strings.Join([]string{nameFlag + p.Name, p.ExternalID, p.Referential}, "\x00")
	rest := strings.ToLower(sortableEncoding.EncodeToString([]byte(joined)))
	var pieces [sortKeyParts]string
	for i := range pieces {
		n := min(sortKeyPartLength, len(rest))
		pieces[i], rest = v.accountMark+rest[:n], rest[n:]
	}
	return pieces
}
