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

// NewDocument returns the document of a row of a generation. It fails if the row's content cannot be read. It is here and not with the
// code that fills the index, because documents and queries must encode words alike.
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

// wordEncoder writes an account's words. The server considers only a limited number of indexed words that resemble a typed one, so
// each word carries a mark of its account, and words of other accounts do not resemble it. The mark follows the first letter, because
// the server counts a typo in the first letter twice.
type wordEncoder struct{ accountMark string }

func newWordEncoder(account string) wordEncoder {
	return wordEncoder{siteindex.HashText(account)[:siteindex.AccountMarkLetters]}
}

// maxWordBytes is a little less than the longest word that the server keeps. The server does not compare longer words beyond that;
// verifyRow does.
const maxWordBytes = 240

// encodeWord returns a word as it is indexed: letters from a to z and digits. With the mark qrstuvwx, mende is mqrstuvwxende. A word
// is cut soon after maxWordBytes.
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

// encodePrefix returns the beginning of a word as a word of its own. The server considers at most a thousand words that begin with the
// typed letters, so such words serve to find sites when few letters were typed. The server treats only the last word of a text as a
// prefix, so they also serve for the words before it.
func (v wordEncoder) encodePrefix(w string) string { return v.encodeWord(w) + "0" }

// encodeEarlyPrefix returns the encoded prefix by which a word before the last one is found. For a long word it holds only the first
// letters, with which other words may begin too; verifyRow excludes those.
func (v wordEncoder) encodeEarlyPrefix(w string) string {
	return v.encodePrefix(firstLetters(w, maxIndexedPrefix(w)))
}

// firstLetters returns at most the first n letters of a word.
func firstLetters(w string, n int) string {
	for i := range w {
		if n == 0 {
			return w[:i]
		}
		n--
	}
	return w
}

// maxIndexedPrefix returns the length in letters of the longest prefix of a word that is indexed as a word of its own.
func maxIndexedPrefix(w string) int { return max(5, maxPrefixLetters(w)) }

// maxPrefixLetters returns up to how many letters the last word of a text is found by such a prefix, without typos. Numbers allow no
// typos, so it covers all but the longest numbers.
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

// encodeTexts returns the words of texts as they are indexed. It puts a filler word first, so that no real word scores higher for
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

// encodeQuery returns a query's words as they are sent to the server. Quoted words must match exactly. replaced has a bit for each
// word that is replaced with its expansions or, before the last word, with prefixes.
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
		encoded += " " // otherwise the server would treat the last word as a prefix
	}
	return encoded
}

// encodeExternalID returns an external id as it is indexed, whatever its case. The encoding of a prefix is a prefix of the encoding.
func (v wordEncoder) encodeExternalID(id string) string {
	return v.accountMark + hex.EncodeToString([]byte(strings.ToLower(id)))
}

const (
	sortKeyParts      = 4   // attributes that a sort key takes
	sortKeyPartLength = 440 // bytes of one of them; the server cuts at 479
	rangeEnd          = "~" // sorts after all encoded texts
)

// sortableEncoding preserves the order of bytes, because its letters are in ASCII order.
var sortableEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)

// encodeSortKey returns a sort key of search.ByName in parts that are compared one after the other as texts. A part without content
// holds only the mark. The flag in front sorts sites without a name last.
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
