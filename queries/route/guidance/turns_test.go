package guidance

import (
	"testing"

	"lieudit/queries/route/profile"
)

func TestTurnsAreToldWhereTheWayIsNotObvious(t *testing.T) {
	t.Parallel()
	testSituations(t, []situation{
		{
			rule: "a crossing of two streets",
			drawing: `
    c
    |
a---b---e
    |
    d`,
			ways: "abe highway=primary\ncbd highway=primary",
			paths: map[string]string{
				"abe": "", "abc": "tourner gauche cbd", "abd": "tourner droite cbd", "cba": "tourner droite abe", "dbc": "",
			},
		},
		{
			rule: "streets that all end at a crossing: straight on another name begins",
			drawing: `
         c
a--------b------------e
         d`,
			ways:  "ab\nbc\nbd\nbe",
			paths: map[string]string{"abe": "continuer tout_droit be", "abc": "tourner gauche bc", "eba": "", "abd": "tourner droite bd"},
		},
		{
			rule: "a street that begins at another",
			drawing: `
    d
a---b---c`,
			ways: "abc\nbd",
			paths: map[string]string{
				"abc": "", "abd": "tourner gauche bd", "cbd": "tourner droite bd", "dba": "tourner droite abc",
				"dbc": "tourner gauche abc",
			},
		},
		{
			rule: "a bend without a choice is not told",
			drawing: `
        c

a-------b`,
			ways:  "ab name=Rue~Foch\nbc name=Rue~Foch",
			paths: map[string]string{"abc": ""},
		},
		{
			rule: "a street that bends away from its prolongation",
			drawing: `
    c

a---b---d`,
			ways:  "abc\nbd",
			paths: map[string]string{"abc": "continuer gauche abc", "abd": "continuer tout_droit bd"},
		},
		{
			rule: "a street that bends, beside a street that goes off to the other side",
			drawing: `
         c

a----b

         d`,
			ways:  "abc\nbd",
			paths: map[string]string{"abc": "bifurcation legerement_gauche abc", "abd": "bifurcation legerement_droite bd"},
		},
		{
			rule: "a bend past a drive is not told",
			drawing: `
    c

a---b---d`,
			ways:  "abc\nbd highway=service name=-",
			paths: map[string]string{"abc": "", "abd": "continuer tout_droit"},
		},
		{
			rule: "a turn with a drive ahead is told",
			drawing: `
    c

a---b---d`,
			ways:  "ab\nbc\nbd highway=service name=-",
			paths: map[string]string{"abc": "tourner gauche bc"},
		},
		{
			rule: "slight and sharp turns",
			drawing: `
   g        c

a-------b-------e

   h    d`,
			ways: "abe\nbg\nbh\nbc\nbd",
			paths: map[string]string{
				"abg": "tourner fortement_gauche bg", "abh": "tourner fortement_droite bh", "abc": "tourner legerement_gauche bc",
				"abd": "tourner droite bd",
			},
		},
		{
			rule: "a road that cannot be entered is no choice",
			drawing: `
             c

a-------b

        d`,
			ways:  "ab\nbc\ndb oneway=yes",
			paths: map[string]string{"abc": ""},
		},
		{
			rule: "the only turn at the end of a street is told",
			drawing: `
    c

a---b---d

    e`,
			ways:  "ab\nebc oneway=yes\ndb name=ab oneway=yes",
			paths: map[string]string{"abc": "tourner gauche ebc"},
		},
		{
			rule: "back at a dead end",
			drawing: `
a---b---c`,
			ways:  "abc",
			paths: map[string]string{"abcb": "demi_tour demi_tour abc"},
		},
		{
			rule: "streets without names",
			drawing: `
    c

a---b---d`,
			ways:  "abd name=-\nbc name=-",
			paths: map[string]string{"abc": "tourner gauche", "abd": ""},
		},
		{
			rule: "drives without names",
			drawing: `
    c

a---b---d`,
			ways:  "abd name=- highway=service\nbc name=- highway=service",
			paths: map[string]string{"abc": "tourner gauche", "abd": ""},
		},
		{
			rule: "a road that ends at a road of its name and number",
			drawing: `
       c
       |
a------b
       |
       d`,
			ways:  "ab name=- ref=D~12\ncbd name=Rue~Foch ref=D~12",
			paths: map[string]string{"abd": "continuer droite Rue Foch D 12", "cbd": ""},
		},
		{
			rule: "a road of the same name goes on past a lesser one that leads as straight",
			drawing: `
              e
a------b------c`,
			ways:  "abc highway=primary\nbe name=- highway=secondary",
			paths: map[string]string{"abc": "", "abe": "bifurcation legerement_gauche"},
		},
		{
			rule: "on foot, paths that go off are passed",
			mode: profile.Foot,
			drawing: `
    c

a---b---d`,
			ways:  "abd\nbc name=- highway=footway",
			paths: map[string]string{"abd": "", "abc": "tourner gauche"},
		},
	})
}

func TestANameIsToldWhereItChanges(t *testing.T) {
	t.Parallel()
	testSituations(t, []situation{
		{
			rule: "a new name",
			drawing: `
a-------------b-------------c`,
			ways:  "ab\nbc",
			paths: map[string]string{"abc": "continuer tout_droit bc"},
		},
		{
			rule: "not for a moment",
			drawing: `
a-------------b------c----------------d`,
			ways:  "ab name=Rue~Foch\nbc name=Pont~Neuf\ncd name=Rue~Foch",
			paths: map[string]string{"abcd": "", "abc": ""},
		},
		{
			rule: "a new name at a hairpin",
			drawing: `
a--------------------b
  c`,
			ways:  "ab\nbc",
			paths: map[string]string{"abc": "continuer fortement_droite bc"},
		},
		{
			rule: "not where a name is lost",
			drawing: `
a-------------b-------------c----------------d`,
			ways:  "ab name=Rue~Foch\nbc name=-\ncd name=Rue~Foch",
			paths: map[string]string{"abc": "", "abcd": ""},
		},
		{
			rule: "a name behind a stretch without one",
			drawing: `
a-------------b-------------c----------------d`,
			ways:  "ab name=Rue~Foch\nbc name=-\ncd name=Rue~Hoche",
			paths: map[string]string{"abcd": "continuer tout_droit Rue Hoche"},
		},
		{
			rule: "a numbered road keeps on under other names",
			drawing: `
a-------------b-------------c`,
			ways:  "ab name=Rue~Foch ref=D~12\nbc name=Rue~Hoche ref=D~12;D~13",
			paths: map[string]string{"abc": ""},
		},
		{
			rule: "a number goes on where a name begins",
			drawing: `
a-------------b-------------c`,
			ways:  "ab name=- ref=D~12\nbc name=Rue~Hoche ref=D~12",
			paths: map[string]string{"abc": ""},
		},
		{
			rule: "the same name, another number",
			drawing: `
a-------------b-------------c`,
			ways:  "ab name=Rue~Foch ref=D~12\nbc name=Rue~Foch ref=D~13",
			paths: map[string]string{"abc": ""},
		},
		{
			rule: "a motorway that becomes another",
			drawing: `
a-------------b-------------c`,
			ways:  "ab name=- ref=A~6 highway=motorway\nbc name=- ref=A~46 highway=motorway",
			paths: map[string]string{"abc": "continuer tout_droit A 46"},
		},
		{
			rule: "a name that begins just behind the turn belongs to it",
			drawing: `
    d
    |
    |
    e
    |
a---b---c`,
			ways:  "abc\nbe name=-\ned name=Rue~Foch",
			paths: map[string]string{"abed": "tourner gauche Rue Foch"},
		},
	})
}
