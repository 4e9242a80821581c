package accuracy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"lieudit/queries/address"
)

// judgement is how right the answers to one question are.
type judgement struct {
	first   bool     // the first answer is right, or no answer is right and none came
	topFive bool     // one of the answers is right
	counted []string // the counters of the group that count this question
}

// The counters of harmful answers: a client may act on them without asking anybody.
const (
	countFalseExact    = "false exact"    // the first answer is rated exact and is wrong
	countFalseResolved = "false resolved" // the first answer is wrong and good enough to be acted upon
	countOtherNumber   = "other number"   // the first answer is wrong: another house number
)

// fairSet is the prefix of the sets whose expected ids are another geocoder's answers. They are judged by isFairlyRight.
const fairSet = "dpe69"

// storedJudge judges answers to stored questions.
type storedJudge struct {
	exists func(id string) bool // reports whether the vintage has a record with that id
}

// judge compares the answers with the expected id.
func (j storedJudge) judge(q question, answers []address.Match) (result judgement) {
	if q.id == "" {
		result.first = len(answers) == 0
		result.topFive = result.first
	} else if i := slices.IndexFunc(answers, func(m address.Match) bool { return j.isRight(q, m.Record) }); i >= 0 {
		result.first, result.topFive = i == 0, true
	}
	if result.first || len(answers) == 0 {
		return result
	}
	best := answers[0]
	if best.Verdict == address.Exact {
		result.counted = append(result.counted, countFalseExact)
	}
	if !q.completes && best.IsResolved { // a suggestion is chosen by a person
		result.counted = append(result.counted, countFalseResolved)
	}
	if q.id != "" && best.Type == address.HouseNumber && (houseNumber{best.Number, best.Rep}) != numberOfID(q.id) {
		result.counted = append(result.counted, countOtherNumber)
	}
	return result
}

// isRight reports whether an answer is the expected one. An id of two parts is that of a street, and every answer on that street is right.
func (j storedJudge) isRight(q question, r address.Record) bool {
	if r.ID == q.id {
		return true
	}
	if len(strings.Split(q.id, "_")) == 2 {
		return streetID(r.ID) == q.id
	}
	return strings.HasPrefix(q.set, fairSet) && j.isFairlyRight(q, r)
}

// isFairlyRight reports whether an answer is right although another one is expected: it is on the expected street, and is one of the typed
// numbers, or the street itself if it has none of them.
func (j storedJudge) isFairlyRight(q question, r address.Record) bool {
	street := streetID(q.id)
	if streetID(r.ID) != street {
		return false
	}
	var known []houseNumber // of the typed numbers
	for _, n := range typedNumbers(q.text) {
		if !j.exists(n.id(street)) {
			n.rep = ""
		}
		if j.exists(n.id(street)) {
			known = append(known, n)
		}
	}
	if r.Type == address.HouseNumber {
		return slices.Contains(known, houseNumber{r.Number, r.Rep})
	}
	return len(known) == 0
}

// houseNumber is a number such as 12 with a repetition index such as bis, or "".
type houseNumber struct{ number, rep string }

// id returns the id of the number on a street.
func (n houseNumber) id(street string) string {
	id := fmt.Sprintf("%s_%05s", street, n.number)
	if n.rep != "" {
		id += "_" + n.rep
	}
	return id
}

// streetID returns the id of the street of an id: its first two parts.
func streetID(id string) string {
	parts := strings.SplitN(id, "_", 3)
	return strings.Join(parts[:min(2, len(parts))], "_")
}

// numberOfID returns the house number of an id, which is empty for a street or a commune.
func numberOfID(id string) (n houseNumber) {
	parts := strings.SplitN(id, "_", 4)
	if len(parts) > 2 {
		if number, err := strconv.Atoi(parts[2]); err == nil {
			n.number = strconv.Itoa(number)
		}
	}
	if len(parts) > 3 {
		n.rep = parts[3]
	}
	return n
}

// wordPattern finds words and numbers in lower case; 12bis is a number and a word.
var wordPattern = regexp.MustCompile(`[0-9]+|\p{L}+`)

// maxNumberDigits keeps postcodes out of typedNumbers.
const maxNumberDigits = 4

// typedNumbers returns the first house numbers of a text: 10 and 12 of "Villa 10-12 rue du 8 Mai". A single letter, bis, ter or quater after a
// number is its repetition index. The à of "10 à 12" is read as one too, which is harmless: no street has such a number.
func typedNumbers(line string) (all []houseNumber) {
	for _, word := range wordPattern.FindAllString(strings.ToLower(line), -1) {
		isNumber := word[0] >= '0' && word[0] <= '9'
		switch {
		case isNumber && len(word) <= maxNumberDigits:
			all = append(all, houseNumber{number: strings.TrimLeft(word, "0")})
		case len(all) == 0 || word == "et":
		case utf8.RuneCountInString(word) == 1 || word == "bis" || word == "ter" || word == "quater":
			if last := &all[len(all)-1]; last.rep == "" {
				last.rep = word
			}
		default:
			return all
		}
	}
	return all
}
