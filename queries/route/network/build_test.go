package network

import (
	"reflect"
	"strings"
	"testing"

	"lieudit/queries/route"
)

// ways is what is expected of a town: lines of a mode, two letters and the way between them, "-" where there is none.
type ways struct {
	name string
	town town
	want []string
}

func TestRulesOfTheRoad(t *testing.T) {
	t.Parallel()
	for _, tt := range []ways{
		{"a road is used in both directions", town{grid: "abc", ways: []string{"abc highway=primary"}},
			[]string{"car a c abc", "car c a cba", "foot a c abc", "bike c a cba"}},
		{"a one-way road is not driven against", town{grid: "ab\ncd", ways: []string{"ab highway=primary oneway=yes", "bd highway=primary", "dc highway=primary", "ca highway=primary"}},
			[]string{"car a b ab", "car b a bdca", "foot b a ba"}},
		{"a roundabout is driven one way", town{grid: " b \nacd\n e ", ways: []string{"acd highway=footway", "ab highway=primary", "bdeab highway=primary junction=roundabout"}},
			[]string{"car d b deab", "foot d b db"}},
		{"a mode sees its own roads alone", town{grid: "abc\n d ", ways: []string{"abc highway=motorway", "bd highway=footway"}},
			[]string{"car a c abc", "car a d -", "foot b d bd", "foot a c -"}},
		{"a bollard stops cars alone", town{grid: "abc", ways: []string{"abc highway=residential"}, nodes: []string{"b barrier=bollard"}},
			[]string{"car a c -", "car c a -", "foot a c abc", "bike c a cba"}},
		{"a bollard at a crossing stops on all sides", town{grid: " d \nabc\n e ", ways: []string{"abc highway=residential", "dbe highway=residential"}, nodes: []string{"b barrier=bollard"}},
			[]string{"car a c -", "car a d -", "car d e -", "foot a e abe"}},
		{"a wall where two ways end stops pedestrians", town{grid: "abc", ways: []string{"ab highway=path", "bc highway=path"}, nodes: []string{"b barrier=wall"}},
			[]string{"foot a c -", "bike a c -"}},
		{"a ferry joins islands", town{grid: "ab  cd", ways: []string{"ab highway=primary", "cd highway=primary", "bc route=ferry duration=00:10"}},
			[]string{"car a d abcd", "foot d a dcba"}},
		{"two components are not joined", town{grid: "ab cd", ways: []string{"ab highway=primary", "cd highway=primary"}},
			[]string{"car a b ab", "car c d cd", "car a d -"}},
		{"of parallel ways the faster is taken", town{grid: " b \na c\n d ", ways: []string{"abc highway=service", "adc highway=primary"}},
			[]string{"car a c adc", "car c a cda"}},
		{"a loop at the end of a road can be driven both ways", town{grid: "  c \nab d\n  e ", ways: []string{"ab highway=residential", "bcdeb highway=residential"}},
			[]string{"car a c abc", "car a e abe", "car c a cba", "foot e a eba"}},
		{"a way that crosses itself can be left where it does", town{grid: " c \nabd\n e ", ways: []string{"abdcbe highway=residential"}},
			[]string{"car a e abe", "car e a eba"}},
		{"a way is cut at nodes that the map lacks", town{grid: "ab cd", ways: []string{"ab?cd highway=primary"}},
			[]string{"car a b ab", "car c d cd", "car a d -"}},
		{"a node that follows itself is one", town{grid: "abc", ways: []string{"abbcc highway=primary"}},
			[]string{"car a c abc"}},
		{"turning back is allowed at dead ends", town{grid: "abc", ways: []string{"ab highway=primary oneway=yes", "bc highway=primary", "bd highway=primary"}},
			[]string{"car a c abc"}},
	} {
		t.Run(tt.name, func(t *testing.T) { t.Parallel(); checkWays(t, &tt) })
	}
}

func TestRestrictionsForbidTurns(t *testing.T) {
	t.Parallel()
	cross := "  d  \n  e  \nabcfg\n  h  \n  i  "
	roads := []string{"abc highway=primary", "cfg highway=primary", "cde highway=primary", "chi highway=primary"}
	roads[2] = "ced highway=primary"
	// Two parallel roads, a b c and f e d, joined by b e.
	ladder := "abc\nfed"
	rungs := []string{"ab highway=primary oneway=yes", "bc highway=primary oneway=yes", "be highway=primary oneway=yes", "de highway=primary oneway=yes", "ef highway=primary oneway=yes"}
	// A street of two via ways b c d, entered from a, g and left to e, f.
	chain := "a   e\n bcd \ng   f"
	links := []string{"ab highway=primary", "gb highway=primary oneway=yes", "bc highway=primary", "cd highway=primary", "de highway=primary", "df highway=primary"}
	for _, tt := range []ways{
		{"none", town{grid: cross, ways: roads}, []string{"car a d abced", "car a g abcfg", "car a i abchi", "car g d gfced"}},
		{"no_left_turn forbids one turn", town{grid: cross, ways: roads, relations: []string{"no_left_turn abc c ced"}},
			[]string{"car a d abcfgfced", "car a g abcfg", "car a i abchi", "car g d gfced", "foot a d abced", "bike a d abcfgfced"}},
		{"only_straight_on forbids all others", town{grid: cross, ways: roads, relations: []string{"only_straight_on abc c cfg"}},
			[]string{"car a d abcfgfced", "car a i abcfgfchi", "car a g abcfg", "car d i dechi"}},
		{"no_u_turn holds at a dead end", town{grid: "abc", ways: []string{"ab highway=primary", "bc highway=primary"}, relations: []string{"no_u_turn bc c bc"}},
			[]string{"car a c abc"}},
		{"a restriction on a way that goes on is not about going straight", town{grid: "abc\n d ", ways: []string{"abc highway=primary", "bd highway=primary"}, relations: []string{"no_u_turn abc b abc"}},
			[]string{"car a c abc", "car a d abd", "car c a cba"}},
		{"over a way", town{grid: ladder, ways: rungs, relations: []string{"no_u_turn ab be ef"}},
			[]string{"car a f -", "car a c abc", "car d f def"}},
		{"over a way, only", town{grid: chain, ways: links, relations: []string{"only_left_turn ab bc cd cd de"}},
			[]string{"car a f abcdf"}},
		{"over two ways", town{grid: chain, ways: links, relations: []string{"no_left_turn ab bc cd de"}},
			[]string{"car a e abcdfde", "car a f abcdf", "car g e gbcde", "car e a edcba"}},
		{"over ways in any order", town{grid: chain, ways: links, relations: []string{"no_left_turn ab cd bc de"}},
			[]string{"car a f abcdf", "car g e gbcde"}},
		{"overlapping ones keep apart", town{grid: chain, ways: links, relations: []string{"no_left_turn ab bc cd de", "no_right_turn gb bc cd df"}},
			[]string{"car a f abcdf", "car g e gbcde"}},
		{"one over a part of another's ways", town{grid: chain, ways: links, relations: []string{"no_left_turn ab bc cd de", "no_right_turn bc cd df"}},
			[]string{"car g e gbcde"}},
		{"members that are missing or do not meet have no effect", town{grid: cross, ways: roads, relations: []string{
			"no_left_turn missing c ced", "no_left_turn abc i ced", "no_left_turn abc missing ced", "no_left_turn abc ced cfg"}},
			[]string{"car a d abced", "car a g abcfg"}},
	} {
		t.Run(tt.name, func(t *testing.T) { t.Parallel(); checkWays(t, &tt) })
	}
}

// checkWays compares ways with what is expected.
func checkWays(t *testing.T, w *ways) {
	t.Helper()
	n := openTown(t, &w.town)
	for _, line := range w.want {
		f := strings.Fields(line)
		got, _ := n.way(t, route.Mode(f[0]), f[1][0], f[2][0])
		if got == "" {
			got = "-"
		}
		if got != f[3] {
			t.Errorf("%s: %s", line, got)
		}
	}
}

func TestRestrictionsWithoutEffectAreCounted(t *testing.T) {
	t.Parallel()
	n := openTown(t, &town{grid: "abc\n d ", ways: []string{"ab highway=primary", "bc highway=primary", "bd highway=primary"}, relations: []string{
		"no_left_turn ab b bd", "no_left_turn missing b bd", "no_left_turn ab missing bd", "no_left_turn ab d bc", "no_left_turn ab b b"}})
	want := []LeftOut{{"a member is no road of the map", 2, []int64{2, 3}}, {"the members do not meet, or are closed", 1, []int64{4}},
		{"for other vehicles, or of no known form", 1, []int64{5}}}
	if n.summary.Restrictions != 1 || !reflect.DeepEqual(n.summary.LeftOut, want) {
		t.Errorf("%d restrictions, left out %v, want %v", n.summary.Restrictions, n.summary.LeftOut, want)
	}
}
