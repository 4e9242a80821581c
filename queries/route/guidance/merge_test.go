package guidance

import (
	"testing"

	"lieudit/queries/route/profile"
)

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
			rule: "on foot it is a road like others", mode: profile.Foot, drawing: ring,
			ways:  "ab\ncd\nef\ngh\nbcegb junction=roundabout name=Place~Foch",
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
