package specimen

import "strings"

// name is a name no other street of the commune has.
func (p *place) name(locality bool) string {
	for try := 0; ; try++ {
		name := ""
		switch {
		case locality:
			name = p.hamlet()
		case try < 4:
			name = p.kind() + " " + p.after(p.kindless())
		default:
			name = p.kind() + " " + p.person()
		}
		if try > 20 {
			name += " " + surnames[p.rand.IntN(len(surnames))]
		}
		if !p.taken[name] {
			p.taken[name] = true
			return name
		}
	}
}

// kindless picks what sort of name follows the type of a street.
func (p *place) kindless() int { return p.rand.IntN(100) }

// after is what follows the type of a street.
func (p *place) after(sort int) string {
	switch {
	case sort < 42:
		return things[p.skewed(len(things))]
	case sort < 50:
		return "des " + plants[p.skewed(len(plants))]
	case sort < 58:
		return famous[p.skewed(len(famous))]
	case sort < 62:
		return days[p.skewed(len(days))]
	case sort < 68:
		return saints[p.skewed(len(saints))]
	case sort < 76 && len(p.neighbours) > 0:
		return of(p.neighbours[p.rand.IntN(len(p.neighbours))])
	case sort < 84:
		return "du " + sizes[p.rand.IntN(len(sizes))] + " " + spots[p.skewed(len(spots))]
	}
	return p.person()
}

func (p *place) person() string {
	return forenames[p.rand.IntN(len(forenames))] + " " + surnames[p.rand.IntN(len(surnames))]
}

// hamlet is the name of a place without numbers.
func (p *place) hamlet() string {
	if p.chance(0.5) {
		return hamlets[p.rand.IntN(len(hamlets))]
	}
	return hills[p.rand.IntN(len(hills))] + " " + surnames[p.rand.IntN(len(surnames))]
}

// of puts "de" before the name of a commune, as French does.
func of(name string) string {
	if rest, ok := strings.CutPrefix(name, "Le "); ok {
		return "du " + rest
	}
	if rest, ok := strings.CutPrefix(name, "Les "); ok {
		return "des " + rest
	}
	if strings.ContainsAny(name[:1], "AEIOUY") || strings.HasPrefix(name, "É") {
		return "d'" + name
	}
	return "de " + name
}

// kinds are types of streets with their share of a thousand.
var kinds = [...]struct {
	name  string
	share int
}{
	{"Rue", 430}, {"Chemin", 115}, {"Route", 90}, {"Impasse", 90}, {"Allée", 72}, {"Avenue", 52}, {"Place", 38},
	{"Boulevard", 22}, {"Passage", 10}, {"Lotissement", 10}, {"Résidence", 9}, {"Square", 8}, {"Ruelle", 7}, {"Clos", 6},
	{"Hameau", 6}, {"Montée", 5}, {"Quai", 5}, {"Sentier", 4}, {"Cité", 4}, {"Cours", 3}, {"Traverse", 3}, {"Venelle", 3},
	{"Rond-Point", 2}, {"Promenade", 2}, {"Villa", 2}, {"Esplanade", 1}, {"Faubourg", 1},
}

// kind is the type of a street.
func (p *place) kind() string {
	n := p.rand.IntN(1000)
	for _, k := range kinds {
		if n -= k.share; n < 0 {
			return k.name
		}
	}
	return kinds[0].name
}
