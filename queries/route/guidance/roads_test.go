package guidance

import (
	"testing"

	"lieudit/queries/route"
	"lieudit/queries/route/profile"
)

func TestRoadsPartAndJoin(t *testing.T) {
	t.Parallel()
	testSituations(t, []situation{
		{
			rule: "a fork",
			drawing: `
            c
a-----b
            d`,
			ways:  "ab\nbc\nbd",
			paths: map[string]string{"abc": "bifurcation legerement_gauche bc", "abd": "bifurcation legerement_droite bd"},
		},
		{
			rule: "the middle of a fork",
			drawing: `
            c
a-----b-----e
            d`,
			ways:  "ab\nbc\nbd\nbe",
			paths: map[string]string{"abe": "bifurcation tout_droit be"},
		},
		{
			rule: "a street that parts into its two directions is no fork",
			drawing: `
            c
a-----b
            d`,
			ways:  "ab name=Rue~Foch\ncb name=Rue~Foch oneway=yes\nbd name=Rue~Foch oneway=yes",
			paths: map[string]string{"abd": ""},
		},
		{
			rule: "a drive that goes off slightly is no fork",
			drawing: `
            c
a-----b
            d`,
			ways:  "abc\nbd highway=service name=-",
			paths: map[string]string{"abc": "", "abd": "tourner legerement_droite"},
		},
		{
			rule: "a motorway that parts",
			drawing: `
                  c
a-----b
                  d`,
			ways: `
ab name=- ref=A~6 highway=motorway
bc name=- ref=A~6 highway=motorway
bd name=- ref=A~46 highway=motorway destination=Lyon~Est`,
			paths: map[string]string{
				"abc": "bifurcation legerement_gauche A 6", "abd": "bifurcation legerement_droite A 46 Lyon Est",
			},
		},
		{
			rule: "off a motorway and past its exit",
			drawing: `
a-----b-----------c
                  d---e`,
			ways: `
abc name=- ref=A~6 highway=motorway
bd name=- highway=motorway_link oneway=yes destination=Lyon;Bron junction:ref=12
de name=- highway=motorway_link oneway=yes`,
			paths: map[string]string{"abc": "", "abde": "sortie legerement_droite 12 Lyon, Bron"},
		},
		{
			rule: "onto a motorway",
			drawing: `
g
|
a
|
|      f
|
|            h-----b-----c
e`,
			ways: `
gae name=Rue~Foch highway=primary
af name=- highway=motorway_link oneway=yes destination:ref=A~6 destination=Lyon
fb name=- highway=motorway_link oneway=yes
hbc name=- ref=A~6 highway=motorway`,
			paths: map[string]string{"gafbc": "bretelle gauche A 6: Lyon; insertion tout_droit A 6"},
		},
		{
			rule: "ramps that part",
			drawing: `
                   e----
a-----b----d
        c          f`,
			ways: `
abd name=- highway=motorway_link oneway=yes
de name=- highway=motorway_link oneway=yes destination=Lyon
df name=- highway=motorway_link oneway=yes destination=Paris`,
			paths: map[string]string{"abde": "bifurcation legerement_gauche Lyon", "abdf": "bifurcation legerement_droite Paris"},
		},
		{
			rule: "a slip road is a turn",
			drawing: `
a-----b-----c-----d
       
        e
       
            f
            |
            g`,
			ways: `
abcd highway=primary
be name=- highway=primary_link oneway=yes
ef name=- highway=primary_link oneway=yes
cfg highway=secondary`,
			paths: map[string]string{"abefg": "tourner droite cfg", "abcfg": "tourner droite cfg", "abcd": ""},
		},
		{
			rule: "motorways that join",
			drawing: `
a--------------
               b------c
d--------------`,
			ways:  "ab name=- ref=A~6 highway=motorway\ndb name=- ref=A~46 highway=motorway\nbc name=- ref=A~7 highway=motorway",
			paths: map[string]string{"abc": "insertion tout_droit A 7"},
		},
		{
			rule: "ferry lines that part",
			drawing: `
               c------d
a------b
               e`,
			ways:  "ab\nbc route=ferry name=-\nbe route=ferry name=-\ncd",
			paths: map[string]string{"abcd": "bac tout_droit; continuer tout_droit cd"},
		},
		{
			rule: "onto a ferry and off it",
			drawing: `
a-----b-----------------c------d
                        |
                        e`,
			ways: `
ab
bc route=ferry name=Bac~de~Duclair
dce name=Quai`,
			paths: map[string]string{
				"abcd": "bac tout_droit Bac de Duclair; continuer tout_droit Quai",
				"abce": "bac tout_droit Bac de Duclair; tourner droite Quai",
			},
		},
	})
}

func TestAManeuverSaysWhetherTheRoadStaysTheSame(t *testing.T) {
	t.Parallel()
	const fork = `
a-----e-----b
                  c
                  d`
	for _, c := range []struct {
		rule, ways string
		want       bool
	}{
		{"one name", "aebd name=Rue~Foch\nbc", true},
		{"another name", "aeb name=Rue~Foch\nbd name=Rue~Hoche\nbc", false},
		{"a name that is lost for a bridge", "ae name=Rue~Foch\neb name=-\nbd name=Rue~Foch\nbc", true},
		{"one number, no name", "aebd name=- ref=D~12\nbc", true},
		{"one number, another name", "aeb name=Rue~Foch ref=D~12\nbd name=Rue~Hoche ref=D~12\nbc ref=D~12", false},
		{"one motorway of two names", "aeb name=X ref=A~6 highway=motorway\nbd name=Y ref=A~6 highway=motorway\nbc ref=A~7 highway=motorway", true},
		{"no names", "aebd name=-\nbc name=-", false},
	} {
		steps := Steps(route.Car, newTown(t, profile.Car, fork, c.ways).stretches(t, "aebd"))
		if len(steps) != 3 {
			t.Errorf("%s: got %d steps, want 3", c.rule, len(steps))
			continue
		}
		if got := steps[1].Maneuver.IsSameRoad; got != c.want || steps[0].Maneuver.IsSameRoad || steps[2].Maneuver.IsSameRoad {
			t.Errorf("%s: got %t, want %t", c.rule, got, c.want)
		}
	}
}
