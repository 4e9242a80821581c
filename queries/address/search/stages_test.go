package search

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"lieudit/queries/address/addresstest"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/parse"
	"lieudit/queries/address/vintage"
)

// loadIndex makes the index of the hamlet and of streets that are easily taken for one another.
var loadIndex = sync.OnceValues(func() (*Index, error) {
	rows := addresstest.Hamlet()
	mende, chanac := addresstest.NewArea("48000", "48095", "Mende"), addresstest.NewArea("48230", "48039", "Chanac")
	for i, street := range []string{"Rue Jean Moulin", "Rue du Port", "Impasse Bellevue", "Rue de la Fontaine", "Place de l'Ancienne Fontaine", "Grand Rue"} {
		key := fmt.Sprintf("1%03d", i)
		rows = append(rows, addresstest.NewHouse(mende, key, street, 4, ""), addresstest.NewHouse(mende, key, street, 40, ""))
	}
	rows = append(rows, addresstest.NewHouse(chanac, "2000", "Rue Belle Vue", 9, ""), addresstest.NewHouse(mende, "2010", "Rue Bellevue", 4, ""))
	v, err := addresstest.BuildVintage(rows)
	if err != nil {
		return nil, err
	}
	table, err := commune.Load()
	if err != nil {
		return nil, err
	}
	table.PrepareSearch()
	return New(v, table, nil), nil
})

// readLine is the query of a line, which is unfinished if it ends with an ellipsis.
func readLine(t *testing.T, line string) *query {
	t.Helper()
	x, err := loadIndex()
	if err != nil {
		t.Fatal(err)
	}
	line, isUnfinished := strings.CutSuffix(line, "…")
	return newQuery(x, parse.Line(line, isUnfinished), Scope{}, MaxSteps)
}

// example is a line and what a stage makes of it.
type example struct{ line, want string }

// checkStage runs a stage on examples.
func checkStage(t *testing.T, examples []example, stage func(*query) string) {
	t.Helper()
	for _, e := range examples {
		if got := stage(readLine(t, e.line)); got != e.want {
			t.Errorf("%s:\n\t got %s\n\twant %s", e.line, got, e.want)
		}
	}
}

// cities are the names of communes.
func cities(x *query, communes ...uint32) string {
	var names []string
	for _, c := range communes {
		known, _ := x.table.ByCode(x.v.Commune(c).String())
		names = append(names, known.Name)
	}
	return strings.Join(names, ", ")
}

// nameOf is a street with its commune.
func nameOf(x *query, street uint32) string {
	return string(x.v.Name(x.v.StreetName(street))) + " " + cities(x, x.v.StreetCommune(street))
}

// namesOf are the names of the streets of hits.
func namesOf(x *query, hits []hit) string {
	var names []string
	for _, h := range hits {
		names = append(names, nameOf(x, h.street))
	}
	return strings.Join(names, ", ")
}

// streetNamed is a street by its name and commune.
func streetNamed(t *testing.T, x *query, name string) uint32 {
	t.Helper()
	for street := range uint32(x.v.Streets + x.v.Localities) {
		if nameOf(x, street) == name {
			return street
		}
	}
	t.Fatalf("no street %s", name)
	return 0
}

// likeliestPlace is the first place of a question, or Mende.
func likeliestPlace(x *query) place {
	if places := (recognizer{x}).recognize().places; len(places) > 0 {
		return places[0]
	}
	c, _ := x.v.CommuneOf("48095")
	return place{commune: c, name: vintage.None}
}

func TestThePostcodeIsReadWithWhatItMayHaveBeen(t *testing.T) {
	t.Parallel()
	checkStage(t, []example{
		{"mende", "0 near [] in  begun "},
		{"12 rue des lilas 48000 mende", "48000 near [] in  begun "},
		{"12 rue des lilas 48001 mende", "0 near [48000] in Mende, Balsièges begun "},
		{"12 rue des lilas 4800 mende", "0 near [48000] in Mende, Balsièges begun "},
		{"12 rue des lilas 48900 mende cedex", "0 near [] in  begun "},
		{"10 rue jenner 482…", "0 near [] in  begun Chanac"},
	}, func(x *query) string {
		p := x.postcode
		return fmt.Sprintf("%d near %v in %s begun %s", p.code, p.near, cities(x, p.nearCommunes...), cities(x, p.begunCommunes...))
	})
	if x := readLine(t, "10 rue jenner 75013"); cities(x, x.postcode.city...) != "Paris 2e Arrondissement, Paris 13e Arrondissement" {
		t.Errorf("the city of 75013: %s", cities(x, x.postcode.city...))
	}
}

func TestTheLastWordsMayNameADivision(t *testing.T) {
	t.Parallel()
	checkStage(t, []example{
		{"12 rue des lilas lozère", "lozere [48]"}, {"12 rue des lilas, haute-loire", "haute loire [43]"}, {"4 rue de la lozère", " []"},
		{"12 rue des lilas lozère occitanie", "lozere occitanie [48]"},
		{"rue loire", " []"}, {"lozère", " []"}, {"12 rue des lilas lozère france", "lozere [48]"}, {"4 rue jean moulin paris", " []"},
	}, func(x *query) string { return fmt.Sprint(x.q.Typed(x.division.at), " ", x.division.departments) })
}

func TestWordsStandForTermsThatTheyAreLike(t *testing.T) {
	t.Parallel()
	checkStage(t, []example{
		{"rue lilas", "lilas 100"}, {"r. lilas", "lilas 100"}, {"12 av", "avenue 100"}, {"rue leglise", "eglise 97"}, {"rue du 8 mai 45", "1945 97"},
		{"rue lylas", "lilas 81"}, {"rue jener", "jenner 81"}, {"rue zzzyx", ""}, {"rue lil…", "lilas 90"}, {"rue 77", ""}, {"12 rue des", "des 100"},
	}, func(x *query) string {
		last := len(x.q.Terms) - 1
		if len(x.lexicon.alternatives[last]) == 0 && !x.q.Completing {
			x.lexicon.addFuzzy(last)
		}
		var all []string
		for _, a := range x.lexicon.alternatives[last] {
			all = append(all, fmt.Sprint(string(x.v.Term(a.term)), " ", a.sim))
		}
		for term := x.lexicon.low[last]; x.lexicon.prefixes.Has(last) && term < x.lexicon.high[last]; term++ {
			all = append(all, fmt.Sprint(string(x.v.Term(term)), " ", x.lexicon.sim(last, term)))
		}
		return strings.Join(all, ", ")
	})
}

func TestCommunesAreRecognisedWhereTheyStand(t *testing.T) {
	t.Parallel()
	checkStage(t, []example{
		{"12 rue des lilas 48000 mende", "Mende by mende, Mende by , Balsièges by ; mende"},
		{"7 route de mende chanac", "Chanac by chanac, Mende by mende; mende, chanac"},
		{"4 rue jean moulin 48000", "Mende by , Balsièges by ; "},
		{"4 rue jean moulin (48) mende", "Mende by mende; mende"},
		{"4 rue jean moulin mende (48)", "Mende by mende 48; mende"},
		{"2 place du foirail le monastier", "Chanac by monastier; monastier"},
		{"2 rue zzz strasbourg", "; strasbourg"},
		{"4 rue jean moulin men…", "Mende by men; men"},
	}, func(x *query) string {
		r := recognizer{x}.recognize()
		var places, mentions []string
		for _, p := range r.places {
			places = append(places, cities(x, p.commune)+" by "+x.q.Typed(p.at))
		}
		for _, m := range r.mentions {
			mentions = append(mentions, x.q.Typed(m.at))
		}
		return strings.Join(places, ", ") + "; " + strings.Join(mentions, ", ")
	})
}

func TestMentionsBindWhereCommunesStand(t *testing.T) {
	t.Parallel()
	checkStage(t, []example{
		{"12 rue des lilas mende", "mende"}, {"7 route de mende", ""}, {"mende 4 rue jean moulin", "mende"}, {"7 route de mende chanac", "chanac"},
	}, func(x *query) string {
		var all []string
		for _, m := range (recognizer{x}).recognize().bindingMentions(x.q.Words()) {
			all = append(all, x.q.Typed(m.at))
		}
		return strings.Join(all, ", ")
	})
}

func TestStreetsOfAPlaceAreFoundByTheirWords(t *testing.T) {
	t.Parallel()
	checkStage(t, []example{
		{"12 rue des lilas mende", "Rue des Lilas Mende"},
		{"4 rue de la fontaine mende", "Rue de la Fontaine Mende, Place de l'Ancienne Fontaine Mende"},
		{"4 rue bellevue mende", "Impasse Bellevue Mende, Rue Bellevue Mende"},
		{"5 rue des lilas chanac", "Rue des Lilas Chanac"},
		{"4 grand rue mende", "Grand Rue Mende"},
		{"4 fontaine anc…", "Place de l'Ancienne Fontaine Mende, Rue de la Fontaine Mende"},
		{"4 zzzyx mende", ""},
	}, func(x *query) string {
		p := likeliestPlace(x)
		return namesOf(x, (&streetFinder{query: x}).findStreets(p, x.streetWords(p), false))
	})
}

func TestRivalsHoldTheSameDistinctiveWords(t *testing.T) {
	t.Parallel()
	checkStage(t, []example{
		{"4 rue de la fontaine mende", "Rue de la Fontaine Mende, Place de l'Ancienne Fontaine Mende"},
		{"4 place de l'ancienne fontaine mende", "Place de l'Ancienne Fontaine Mende"},
	}, func(x *query) string {
		p := likeliestPlace(x)
		return namesOf(x, (&streetFinder{query: x}).findRivals(p, x.streetWords(p)))
	})
}

func TestStreetsAreFoundEverywhereByTheRarestWord(t *testing.T) {
	t.Parallel()
	checkStage(t, []example{
		{"12 rue des lilas", "Rue des Lilas Mende, Rue des Lilas Chanac"},
		{"3 rue de l'église", "Rue de l'Église Mende, Rue de l'Église Balsièges"},
		{"10 rue jenner", "Rue Jenner Paris 13e Arrondissement"},
		{"4 rue de l'ancienne fontaine", "Place de l'Ancienne Fontaine Mende"},
		{"4 rue fontaine", "Rue de la Fontaine Mende, Place de l'Ancienne Fontaine Mende"},
		{"4 place fontaine", "Place de l'Ancienne Fontaine Mende, Rue de la Fontaine Mende"},
		{"4 rue fontaine jenner", "Rue Jenner Paris 13e Arrondissement"},
		{"zzzyx", ""},
	}, func(x *query) string {
		finder := areaFinder{&streetFinder{query: x}, recognizer{x}}
		hits, _ := finder.findInArea(nil, x.streetWords(place{}))
		return namesOf(x, hits)
	})
}

func TestStreetsHoldEveryWordOfAnUnfinishedLine(t *testing.T) {
	t.Parallel()
	checkStage(t, []example{
		{"4 rue de la font…", "Rue de la Fontaine Mende"},
		{"4 font…", "Rue de la Fontaine Mende, Place de l'Ancienne Fontaine Mende"},
		{"12 rue des lil…", "Rue des Lilas Mende"}, // the one in Chanac has no 12
		{"5 rue des lil…", "Rue des Lilas Chanac"},
		{"rue des lilas zz…", ""},
	}, func(x *query) string {
		finder := wholeFinder{x, maxVisits * skipsAVisit}
		var hits []hit
		for _, street := range finder.findHolders(finder.heldWords(0), nil) {
			hits = append(hits, hit{street: street})
		}
		return namesOf(x, hits)
	})
}

func TestNamesAreAlignedWithTheWordsThatStandTogether(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, street, want string }{
		{"12 rue des lilas mende", "Rue des Lilas Mende", "rue des lilas, whole, certain"},
		{"12 rue lilas", "Rue des Lilas Mende", "rue lilas, whole, certain"},
		{"12 lilas", "Rue des Lilas Mende", "lilas"},
		{"8 rue du 8 mai 1945", "Rue du 8 Mai 1945 Mende", "rue du 8 mai 1945, whole, certain"},
		{"4 rue j moulin", "Rue Jean Moulin Mende", "rue j moulin, whole"},
		{"4 rue moulin", "Rue Jean Moulin Mende", "rue moulin"},
		{"4 rue de la fontaine", "Place de l'Ancienne Fontaine Mende", "de fontaine"}, // the article is elided
	} {
		x := readLine(t, c.line)
		a := aligner{x.lexicon}.align(x.v.NameTerms(x.v.StreetName(streetNamed(t, x, c.street))), x.q.Words())
		got := x.q.Typed(a.used)
		if a.isWhole {
			got += ", whole"
		}
		if a.isCertain {
			got += ", certain"
		}
		if got != c.want {
			t.Errorf("%s in %s: got %s, want %s", c.street, c.line, got, c.want)
		}
	}
}

// matched are the candidates that a street makes of a line, the best first.
func matched(t *testing.T, x *query, street string) []Candidate {
	t.Helper()
	ranking := &ranker{query: x}
	m := newMatcher(x, ranking)
	found := recognizer{x}.recognize()
	m.places.found = found
	at := streetNamed(t, x, street)
	for _, p := range append(found.places, recognizer{x}.unnamedPlace(x.v.StreetCommune(at), false)) {
		if p.commune == x.v.StreetCommune(at) {
			m.matchStreet(p, at)
		}
	}
	return ranking.list.best
}

func TestAStreetIsMatchedWithItsNumber(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, street, want string }{
		{"12 rue des lilas mende", "Rue des Lilas Mende", "housenumber 12 confirmed"},
		{"12 bis rue des lilas mende", "Rue des Lilas Mende", "housenumber 12bis confirmed"},
		{"12 ter rue des lilas mende", "Rue des Lilas Mende", "housenumber 12"},
		{"13 rue des lilas mende", "Rue des Lilas Mende", "street missing 13"},
		{"rue des lilas mende", "Rue des Lilas Mende", "street confirmed"},
		{"13/14 rue des lilas mende", "Rue des Lilas Mende", "housenumber 14"},
		{"le chapitre mende", "Le Chapitre Mende", "locality confirmed"},
		{"12 rue des lylas mende", "Rue des Lilas Mende", ""}, // lylas is not read as misspelt yet
		{"12 rue jean jaures mende", "Rue Jean Moulin Mende", ""},
	} {
		x := readLine(t, c.line)
		got := ""
		if all := matched(t, x, c.street); len(all) > 0 {
			best := &all[0]
			if got = string(best.Type); best.Type == HouseNumber {
				got += fmt.Sprint(" ", x.v.Number(best.Row), string(x.v.Rep(best.Row)))
			}
			if n, ok := best.MissingNumber(); ok {
				got += fmt.Sprint(" missing ", n)
			}
			if best.IsConfirmed {
				got += " confirmed"
			}
		}
		if got != c.want {
			t.Errorf("%s on %s: got %q, want %q", c.line, c.street, got, c.want)
		}
	}
}

func TestAStreetIsMeantByWordsThatTellItApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line, street string
		want         bool
	}{
		{"4 rue jean moulin", "Rue Jean Moulin Mende", true},
		{"4 rue moulin", "Rue Jean Moulin Mende", true},
		{"4 rue jean jaures", "Rue Jean Moulin Mende", false}, // shares a first name
		{"4 rue de la fontaine", "Rue de la Fontaine Mende", true},
		{"4 rue de la fontaine", "Place de l'Ancienne Fontaine Mende", false}, // lacks what tells the name apart
		{"8 rue du 8 mai", "Rue du 8 Mai 1945 Mende", true},
		{"4 rue zzzyx", "Rue Jean Moulin Mende", false},                   // shares the kind alone
		{"4 place ancienne", "Place de l'Ancienne Fontaine Mende", false}, // shares a qualifier
	} {
		x := readLine(t, c.line)
		street := streetNamed(t, x, c.street)
		p := place{commune: x.v.StreetCommune(street), name: vintage.None}
		candidate := Candidate{place: p, Type: Street, Commune: p.commune, Street: street, Row: vintage.None}
		candidate.alignment = aligner{x.lexicon}.align(x.v.NameTerms(x.v.StreetName(street)), x.streetWords(p))
		candidate.HouseNumber = x.q.HouseNumber(candidate.contiguous, candidate.used)
		words := x.q.Words() &^ candidate.terms()
		if got := (wordMatcher{x}).fitsWords(&candidate, words); got != c.want {
			t.Errorf("%s: %s is meant: %v", c.line, c.street, got)
		}
	}
}

func TestUnknownWordsStandNextToAnAddressThatNeedsNoOther(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, street, want string }{
		{"12 rue des lilas zzzyx qqq 48000 mende", "Rue des Lilas Mende", "zzzyx qqq"},
		{"maison zzzyx 12 rue des lilas 48000 mende", "Rue des Lilas Mende", ""}, // what stands before the number is a building's
		{"12 rue des lilas prolongée 48000 mende", "Rue des Lilas Mende", "none"},
		{"12 rue des lilas de zzzyx 48000 mende", "Rue des Lilas Mende", "none"},
		{"13 rue des lilas zzzyx 48000 mende", "Rue des Lilas Mende", "none"},
	} {
		x := readLine(t, c.line)
		got := "none"
		if all := matched(t, x, c.street); len(all) > 0 && all[0].Type == HouseNumber {
			got = x.q.Typed(all[0].unknown)
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.line, got, c.want)
		}
	}
}

func TestACandidateLiesWhereItWasTyped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, street, want string }{
		{"5 rue des lilas chanac", "Rue des Lilas Chanac", "accepted"},
		{"5 rue des lilas mende", "Rue des Lilas Chanac", ""},
		{"5 rue des lilas 48230", "Rue des Lilas Chanac", "accepted"},
		{"5 rue des lilas 48000", "Rue des Lilas Chanac", ""},
		{"5 rue des lilas 48000 chanac", "Rue des Lilas Chanac", "accepted"},
		{"5 rue des lilas 75013 chanac", "Rue des Lilas Chanac", "contradicted"},
		{"3 rue de l'église 48000 mende", "Rue de l'Église Balsièges", "doubted"},
		{"10 rue jenner 75002", "Rue Jenner Paris 13e Arrondissement", "contradicted"},
		{"5 rue des lilas strasbourg", "Rue des Lilas Chanac", ""},
		{"5 rue des lilas lozère", "Rue des Lilas Chanac", "accepted"},
		{"3 ter avenue du général leclerc lozère", "Avenue du Général Leclerc Mende", "accepted"},
		{"3 ter avenue du général leclerc gard", "Avenue du Général Leclerc Mende", ""},
	} {
		got := ""
		if all := matched(t, readLine(t, c.line), c.street); len(all) > 0 {
			switch best := &all[0]; {
			case best.IsContradicted:
				got = "contradicted"
			case best.IsDoubted:
				got = "doubted"
			default:
				got = "accepted"
			}
		}
		if got != c.want {
			t.Errorf("%s on %s: got %q, want %q", c.line, c.street, got, c.want)
		}
	}
}

func TestCandidatesAreRankedByScoreThenOrder(t *testing.T) {
	t.Parallel()
	x := readLine(t, "4 rue bellevue mende")
	r := &ranker{query: x}
	r.list.add(&Candidate{Street: 2, Row: vintage.None, Score: 8000})
	r.list.add(&Candidate{Street: 1, Row: vintage.None, Score: 8000})
	r.list.add(&Candidate{Street: 3, Row: vintage.None, Score: 9000})
	r.list.add(&Candidate{Street: 3, Row: vintage.None, Score: 7000}) // a worse reading of the same
	r.list.add(&Candidate{Street: 2, Row: vintage.None, Score: 8500}) // a better one
	var got []string
	for _, c := range r.list.best {
		got = append(got, fmt.Sprint(c.Street, ":", c.Score))
	}
	if want := "3:9000 2:8500 1:8000"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if r.levelScores(); r.isSettled() {
		t.Error("a candidate that explains no word settles the question")
	}
}

func TestACorrectedPostcodeMustBeAlone(t *testing.T) {
	t.Parallel()
	corrected := func(street uint32) Candidate {
		return Candidate{Street: street, Row: vintage.None, Score: 7000, IsContradicted: true, postcode: cityPostcode}
	}
	for name, c := range map[string]struct {
		all  []Candidate
		want int
	}{
		"alone":                    {[]Candidate{corrected(1)}, 1},
		"two":                      {[]Candidate{corrected(1), corrected(2)}, 0},
		"one that needs no change": {[]Candidate{{Street: 3, Row: vintage.None, Score: 6000}, corrected(1)}, 1},
	} {
		r := &ranker{list: shortlist{c.all}}
		if r.dropDoubleCorrections(); len(r.list.best) != c.want {
			t.Errorf("%s: %d candidates, want %d", name, len(r.list.best), c.want)
		}
	}
}

func TestQueriesToASourceLoosenInRounds(t *testing.T) {
	t.Parallel()
	checkStage(t, []example{
		{"12 rue des lilas 48000 mende", "rue lilas mende at 48000 | rue lilas mende | lilas in Mende, Balsièges | lilas mende at 48000+lilas mende+rue lilas mende (communes) | rue mende+rue lilas"},
		{"zzzyx mende", "zzzyx mende+zzzyx mende (communes) | zzzyx in Mende | mende+zzzyx"},
	}, func(x *query) string {
		var rounds []string
		for round := range newQueryPlanner(x, recognizer{x}.recognize().places).rounds() {
			var all []string
			for _, q := range round {
				words := strings.Join(q.Words, " ")
				if len(q.Postcodes) > 0 {
					words += " at " + q.Postcodes[0]
				}
				if q.Within != nil {
					words += " in " + cities(x, q.Within...)
				}
				if q.Communes {
					words += " (communes)"
				}
				all = append(all, words)
			}
			rounds = append(rounds, strings.Join(all, "+"))
		}
		return strings.Join(rounds, " | ")
	})
}

func TestAQuestionIsRewrittenByItsSpacesAndSigns(t *testing.T) {
	t.Parallel()
	checkStage(t, []example{
		{"4 ruebellevue mende", "4 rue bellevue mende"}, {"4 rue fon taine mende", "4 rue fontaine mende"}, {"4 rue f0ntaine mende", "4 rue fontaine mende"},
		{"9 rue bellevue chanac", "9 rue belle vue chanac"}, {"4 rue jm moulin mende", "4 rue j m moulin mende"}, {"12 rue des lilas mende", ""},
	}, func(x *query) string {
		var all []string
		for _, q := range (rewriter{x, recognizer{x}.recognize(), &ranker{query: x}}).rewrites() {
			all = append(all, q.Typed(q.All))
		}
		return strings.Join(all, " | ")
	})
}

func TestANamesakeIsNotTheStreetThatWasTyped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line, street string
		want         bool
	}{
		{"4 rue bellevue mende", "Rue Bellevue Mende", false},
		{"4 rue bellevue mende", "Impasse Bellevue Mende", true}, // another kind
		{"4 rue du moulin mende", "Rue Jean Moulin Mende", true}, // tied by a link
		{"4 rue moulin mende", "Rue Jean Moulin Mende", false},
		{"12 rue des lilas mende", "Rue des Lilas Mende", false},
	} {
		x := readLine(t, c.line)
		street := streetNamed(t, x, c.street)
		p := place{commune: x.v.StreetCommune(street), name: vintage.None}
		candidate := Candidate{place: p, Type: Street, Commune: p.commune, Street: street}
		candidate.alignment = aligner{x.lexicon}.align(x.v.NameTerms(x.v.StreetName(street)), x.streetWords(p))
		if got := (namesakes{x}).has(&candidate); got != c.want {
			t.Errorf("%s: %s is a namesake: %v", c.line, c.street, got)
		}
	}
}

func TestAnExplanationTellsWhatBecameOfTheWords(t *testing.T) {
	t.Parallel()
	x, err := loadIndex()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []example{
		{"12 bis rue des lilas 48000 mende", "12 | bis | rue des lilas | 48000 | mende | "},
		{"bâtiment B 12 rue des lilas mende", "12 |  | rue des lilas |  | mende | batiment b"},
		{"12 rue des lilas zzzyx 48000 mende", "12 |  | rue des lilas | 48000 | mende | zzzyx"},
		{"13 rue des lilas mende", "13 |  | rue des lilas |  | mende | "},
	} {
		found, err := x.Search(t.Context(), parse.Line(e.line, false), Scope{})
		if err != nil || len(found.Best) == 0 {
			t.Errorf("%s: nothing (%v)", e.line, err)
			continue
		}
		w := found.Explain(&found.Best[0])
		if got := strings.Join([]string{w.Number, w.Rep, w.Street, w.Postcode, w.City, w.Complement}, " | "); got != e.want {
			t.Errorf("%s: got %s, want %s", e.line, got, e.want)
		}
	}
}
