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
			ways:  "abc\nbd",
			paths: map[string]string{"abc": "", "abd": "tourner gauche bd", "cbd": "tourner droite bd", "dba": "tourner droite abc", "dbc": "tourner gauche abc"},
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
			ways:  "abe\nbg\nbh\nbc\nbd",
			paths: map[string]string{"abg": "tourner fortement_gauche bg", "abh": "tourner fortement_droite bh", "abc": "tourner legerement_gauche bc", "abd": "tourner droite bd"},
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
			paths: map[string]string{"abcd": "bac tout_droit Bac de Duclair; continuer tout_droit Quai", "abce": "bac tout_droit Bac de Duclair; tourner droite Quai"},
		},
	})
}

func TestManoeuvresThatFollowAtOnceAreOne(t *testing.T) {
	t.Parallel()
	testSituations(t, []situation{
		{
			rule: "two slight turns at a junction",
			drawing: `
             d

           e
        
a------b--c---------g
          h`,
			ways:  "abcg\nce name=-\ned name=Rue~Foch\nch",
			paths: map[string]string{"abced": "tourner gauche Rue Foch"},
		},
		{
			rule: "a left turn into a road with separate carriageways",
			drawing: `
       f   g
       |   |
a------b---c------d
       |   |
       h   i`,
			ways: "abcd\nfbh name=Boulevard~Foch oneway=yes\nicg name=Boulevard~Foch oneway=yes",
			paths: map[string]string{
				"abcg": "tourner gauche Boulevard Foch", "abh": "tourner droite Boulevard Foch", "abcd": "",
			},
		},
		{
			rule: "back over the crossing of a road with separate carriageways",
			drawing: `
f----b------g
     |
     |
h----c------i`,
			ways:  "gbf name=Boulevard~Foch oneway=yes\nhci name=Boulevard~Foch oneway=yes\nbc name=Rue~Hoche",
			paths: map[string]string{"hcbf": "demi_tour demi_tour Boulevard Foch"},
		},
		{
			rule: "back through a gap that is drawn with a slip",
			drawing: `
f--------b-------g
        e
h------c---------i`,
			ways:  "gbf name=Boulevard~Foch oneway=yes\nhci name=Boulevard~Foch oneway=yes\nce name=-\neb name=-",
			paths: map[string]string{"hcebf": "demi_tour demi_tour Boulevard Foch"},
		},
		{
			rule: "two turns to the right around a corner stay two",
			drawing: `
a------b----f
       |
d------c
       |
       e`,
			ways:  "abf\nbce\ncd",
			paths: map[string]string{"abcd": "tourner droite bce; tourner droite cd"},
		},
		{
			rule: "a street around an island",
			drawing: `
        g
        c------d
a----b            e---f
        h------i`,
			ways: `
ab name=Rue~Foch
bhie name=Rue~Foch oneway=yes
edcb name=Rue~Foch oneway=yes
ef name=Rue~Foch
cg`,
			paths: map[string]string{"abhief": "", "fedcba": ""},
		},
		{
			rule: "an offset of a street at another",
			drawing: `
            f
            |
a------b----c------d
            |
            |
            g`,
			ways:  "abcd\nfcg",
			paths: map[string]string{"abcd": ""},
		},
		{
			rule: "a zigzag of one street",
			drawing: `
       c--------d
a------b
       e`,
			ways:  "ab name=Rue~Foch\nebc name=Rue~Hoche\ncd name=Rue~Foch\nce",
			paths: map[string]string{"abcd": ""},
		},
		{
			rule: "two turns far apart stay two",
			drawing: `
       c--------d
       |
       |
       |
       |
       |
a------b-----f
       e`,
			ways:  "abf\nebc\ncd name=Rue~Foch\nce",
			paths: map[string]string{"abcd": "tourner gauche ebc; tourner droite Rue Foch"},
		},
	})
}

func TestExitsOfRoundaboutsAreCounted(t *testing.T) {
	t.Parallel()
	const ring = `
        a
        |
        b
     
d----c     g----h
     
        e
        |
        f`
	const ways = "ab\ncd\nef\ngh\nbcegb junction=roundabout name=-"
	testSituations(t, []situation{
		{
			rule: "in and out", drawing: ring, ways: ways,
			paths: map[string]string{
				"abcd": "rond_point 1 cd", "abcef": "rond_point 2 ef", "abcegh": "rond_point 3 gh", "abcegba": "rond_point 4 ab",
				"fegh": "rond_point 1 gh",
			},
		},
		{
			rule: "the way around the island before it is not told",
			drawing: `
             g
       c---d
a----b
       e---f
             h`,
			ways: `
ab
be oneway=yes name=Rue~Foch
cb oneway=yes name=Rue~Foch
bf name=Rue~Hoche
edgfh name=-
efhgde name=- junction=roundabout`,
			paths: map[string]string{"abef": "rond_point legerement_gauche"},
		},
		{
			rule: "a leg that begins inside", drawing: ring, ways: ways,
			paths: map[string]string{"bcd": "rond_point 1 cd", "bcef": "rond_point 2 ef", "bc": ""},
		},
		{
			rule: "a leg that ends inside", drawing: ring, ways: ways,
			paths: map[string]string{"abc": "rond_point droite", "abceg": "rond_point droite"},
		},
		{
			rule: "drives do not count, but where one takes them", drawing: ring,
			ways:  "ab\ncd highway=service\nef\ngh\nbcegb junction=roundabout name=-",
			paths: map[string]string{"abcef": "rond_point 1 ef", "abcd": "rond_point 1 cd"},
		},
		{
			rule: "an exit where the roundabout is entered",
			drawing: `
    a
    |
    |
i---b

   c     d

     e
     |
     f`,
			ways:  "ab\nbi\nef\nbcedb junction=roundabout name=-",
			paths: map[string]string{"abcef": "rond_point 2 ef"},
		},
		{
			rule: "exits that cannot be taken do not count", drawing: ring, ways: "ab\ndc oneway=yes\nef\ngh\nbcegb junction=roundabout name=-",
			paths: map[string]string{"abcef": "rond_point 1 ef"},
		},
		{
			rule: "on foot it is a road like others", mode: profile.Foot, drawing: ring, ways: "ab\ncd\nef\ngh\nbcegb junction=roundabout name=Place~Foch",
			paths: map[string]string{"abcd": "tourner droite Place Foch; tourner legerement_droite cd"},
		},
		{
			rule: "a mini roundabout",
			drawing: `
    c
a---b---e
    d`,
			ways:  "abe\ncbd\nmini b",
			paths: map[string]string{"abd": "rond_point 1 cbd", "abe": "rond_point 2 abe", "abc": "rond_point 3 cbd"},
		},
	})
}
