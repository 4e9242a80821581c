package accuracy

import (
	"slices"
	"testing"

	"lieudit/queries/address"
)

// matchOf returns an answer with a high score and the fields that the judge reads.
func matchOf(id string) address.Match {
	n := numberOfID(id)
	m := address.Match{Record: address.Record{ID: id, Type: address.StreetType, Number: n.number, Rep: n.rep}, Score: 0.9, Verdict: address.Probable, IsResolved: true}
	if n.number != "" {
		m.Type = address.HouseNumber
	}
	if len(id) == 5 {
		m.Type = address.Municipality
	}
	return m
}

func TestAnswersAreJudgedByTheIDThatIsMeant(t *testing.T) {
	t.Parallel()
	const street, number10, number12, number12bis = "69381_0001", "69381_0001_00010", "69381_0001_00012", "69381_0001_00012_bis"
	known := []string{street, number10, number12, number12bis}
	j := storedJudge{exists: func(id string) bool { return slices.Contains(known, id) }}
	for name, c := range map[string]struct {
		set, text, id string
		answers       []string
		first, five   bool
		counted       []string
	}{
		"the id first":                           {set: "tester", id: number10, answers: []string{number10, number12}, first: true, five: true},
		"the id second":                          {set: "tester", id: number10, answers: []string{number12, number10}, five: true, counted: []string{countFalseResolved, countOtherNumber}},
		"the street of a number":                 {set: "tester", id: number10, answers: []string{street}, counted: []string{countFalseResolved}},
		"another repetition index":               {set: "list", id: number12, answers: []string{number12bis}, counted: []string{countFalseResolved, countOtherNumber}},
		"the same number in another street":      {set: "list", id: number12, answers: []string{"69381_0002_00012"}, counted: []string{countFalseResolved}},
		"nothing":                                {set: "tester", id: number10},
		"a street":                               {set: "tester", id: street, answers: []string{street}, first: true, five: true},
		"a number of a street":                   {set: "tester", id: street, answers: []string{number10}, first: true, five: true},
		"a number of another street":             {set: "tester", id: street, answers: []string{"69381_0002_00010"}, counted: []string{countFalseResolved, countOtherNumber}},
		"a street whose id begins the same":      {set: "tester", id: street, answers: []string{"69381_00011"}, counted: []string{countFalseResolved}},
		"a commune":                              {set: "department", id: "48095", answers: []string{"48095"}, first: true, five: true},
		"a street of a commune":                  {set: "department", id: "48095", answers: []string{"48095_0001"}, counted: []string{countFalseResolved}},
		"nothing where nothing is right":         {set: "absent", first: true, five: true},
		"anything where nothing is right":        {set: "absent", answers: []string{number10}, counted: []string{countFalseResolved}},
		"a suggestion is not acted upon":         {set: completionSet, id: number10, answers: []string{street}},
		"fair: the expected end of a range":      {set: "dpe69ex", text: "10-12 Rue X 69001", id: number12, answers: []string{number12}, first: true, five: true},
		"fair: the other end of a range":         {set: "dpe69ex", text: "10-12 Rue X 69001", id: number12, answers: []string{number10}, first: true, five: true},
		"fair: a number that was not typed":      {set: "dpe69ex", text: "10 Rue X 69001", id: number10, answers: []string{number12}, counted: []string{countFalseResolved, countOtherNumber}},
		"fair: a number of the street's name":    {set: "dpe69ex", text: "10 Rue du 12 Mai", id: number10, answers: []string{number12}, counted: []string{countFalseResolved, countOtherNumber}},
		"fair: the street has a typed number":    {set: "dpe69ex", text: "8-10 Rue X 69001", id: number10, answers: []string{street}, counted: []string{countFalseResolved}},
		"fair: the street has no typed number":   {set: "dpe69ex", text: "8 Rue X 69001", id: number10, answers: []string{street}, first: true, five: true},
		"fair: the index that was typed":         {set: "dpe69ex", text: "12bis Rue X", id: number12, answers: []string{number12bis}, first: true, five: true},
		"fair: without an index that exists":     {set: "dpe69ex", text: "12 bis Rue X", id: number12bis, answers: []string{number12}, counted: []string{countFalseResolved, countOtherNumber}},
		"fair: without an index that is unknown": {set: "dpe69ex", text: "10A Rue X", id: number12, answers: []string{number10}, first: true, five: true},
		"fair: a typed number of another street": {set: "dpe69ex", text: "10-12 Rue X", id: number12, answers: []string{"69381_0002_00010"}, counted: []string{countFalseResolved, countOtherNumber}},
		"a range of another set is not fair":     {set: "list", text: "10-12 Rue X", id: number12, answers: []string{number10}, counted: []string{countFalseResolved, countOtherNumber}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var answers []address.Match
			for _, id := range c.answers {
				answers = append(answers, matchOf(id))
			}
			got := j.judge(question{set: c.set, text: c.text, id: c.id, completes: c.set == completionSet}, answers)
			if got.first != c.first || got.topFive != c.five || !slices.Equal(got.counted, c.counted) {
				t.Errorf("got %+v, want %v %v %q", got, c.first, c.five, c.counted)
			}
		})
	}
}

func TestOnlyAWrongExactIsFalse(t *testing.T) {
	t.Parallel()
	j := storedJudge{exists: func(string) bool { return true }}
	exact := matchOf("48095_0001_00012")
	exact.Verdict = address.Exact
	for id, want := range map[string]bool{exact.ID: false, "48095_0001": false, "48095_0002_00012": true, "": true} {
		got := j.judge(question{id: id}, []address.Match{exact})
		if slices.Contains(got.counted, countFalseExact) != want {
			t.Errorf("%q is meant: got %+v, want false exact %v", id, got, want)
		}
	}
}

func TestTypedNumbersAreTheFirstOfTheText(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]houseNumber{
		"12 rue du Four":                         {{"12", ""}},
		"12bis rue du Four":                      {{"12", "bis"}},
		"12 TER, rue du Four":                    {{"12", "ter"}},
		"138A Boulevard de la Croix Rousse":      {{"138", "a"}},
		"10/12 rue du 8 Mai 1945 69001":          {{"10", ""}, {"12", ""}},
		"6 ET 8 PETITE RUE":                      {{"6", ""}, {"8", ""}},
		"10 à 14 rue du Four":                    {{"10", "à"}, {"14", ""}},
		"12 bis à 14 rue du Four":                {{"12", "bis"}, {"14", ""}},
		`Collège "X" - 80 boulevard`:             {{"80", ""}},
		"007 rue du Four":                        {{"7", ""}},
		"rue du Four 69001":                      nil,
		"69001 Lyon 3 rue du Four":               {{"3", ""}},
		"Place du Four":                          nil,
		"":                                       nil,
		"5 Rue de la République 12 (bâtiment 7)": {{"5", ""}},
	} {
		if got := typedNumbers(line); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", line, got, want)
		}
	}
}
