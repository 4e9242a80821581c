package synthetic

import (
	"strings"

	"lieudit/queries/address/commune"
)

// StreetNames returns a function that invents names for streets of a commune, each other than those before and those that are
// taken. It serves whoever invents streets without addresses.
func StreetNames(t *commune.Table, c *commune.Commune, seed uint64, taken []string) func() string {
	p := newGenerator(t, c, seed)
	for _, name := range taken {
		p.usedNames[name] = true
	}
	return func() string { return p.newStreetName(false) }
}

// newStreetName is a name that no other street of the commune has.
func (p *generator) newStreetName(locality bool) string {
	for try := 0; ; try++ {
		name := ""
		switch {
		case locality:
			name = p.newHamletName()
		case try < 4:
			name = p.pickStreetType() + " " + p.newNameAfterType(p.pickNameSort())
		default:
			name = p.pickStreetType() + " " + p.newPersonName()
		}
		if try > 20 {
			name += " " + surnames[p.rand.IntN(len(surnames))]
		}
		if !p.usedNames[name] {
			p.usedNames[name] = true
			return name
		}
	}
}

// pickNameSort picks what kind of name follows the street type, as a percentile.
func (p *generator) pickNameSort() int { return p.rand.IntN(100) }

// newNameAfterType is what follows the street type in a name.
func (p *generator) newNameAfterType(sort int) string {
	switch {
	case sort < 42:
		return nouns[p.pickSkewed(len(nouns))]
	case sort < 50:
		return "des " + plants[p.pickSkewed(len(plants))]
	case sort < 58:
		return famous[p.pickSkewed(len(famous))]
	case sort < 62:
		return dates[p.pickSkewed(len(dates))]
	case sort < 68:
		return saints[p.pickSkewed(len(saints))]
	case sort < 76 && len(p.neighbours) > 0:
		return PrefixDe(p.neighbours[p.rand.IntN(len(p.neighbours))])
	case sort < 84:
		return "du " + sizes[p.rand.IntN(len(sizes))] + " " + spots[p.pickSkewed(len(spots))]
	}
	return p.newPersonName()
}

func (p *generator) newPersonName() string {
	return forenames[p.rand.IntN(len(forenames))] + " " + surnames[p.rand.IntN(len(surnames))]
}

// newHamletName is the name of a locality.
func (p *generator) newHamletName() string {
	if p.isChosen(0.5) {
		return hamlets[p.rand.IntN(len(hamlets))]
	}
	return hamletPrefixes[p.rand.IntN(len(hamletPrefixes))] + " " + surnames[p.rand.IntN(len(surnames))]
}

// PrefixDe puts "de" before the name of a commune, contracted as French does.
func PrefixDe(name string) string {
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

// streetTypes are the street types with their share in a thousand streets.
var streetTypes = [...]struct {
	name  string
	share int
}{
	{"Rue", 430}, {"Chemin", 115}, {"Route", 90}, {"Impasse", 90}, {"Allée", 72}, {"Avenue", 52}, {"Place", 38},
	{"Boulevard", 22}, {"Passage", 10}, {"Lotissement", 10}, {"Résidence", 9}, {"Square", 8}, {"Ruelle", 7}, {"Clos", 6},
	{"Hameau", 6}, {"Montée", 5}, {"Quai", 5}, {"Sentier", 4}, {"Cité", 4}, {"Cours", 3}, {"Traverse", 3}, {"Venelle", 3},
	{"Rond-Point", 2}, {"Promenade", 2}, {"Villa", 2}, {"Esplanade", 1}, {"Faubourg", 1},
}

// pickStreetType picks the type of a street.
func (p *generator) pickStreetType() string {
	n := p.rand.IntN(1000)
	for _, k := range streetTypes {
		if n -= k.share; n < 0 {
			return k.name
		}
	}
	return streetTypes[0].name
}

// The words of street names. Lists that are picked with a skew begin with the commonest.
var (
	nouns = [...]string{"de l'Église", "du Moulin", "de la Mairie", "des Écoles", "de la Gare", "du Château", "de la Fontaine",
		"du Stade", "du Lavoir", "des Jardins", "des Prés", "des Champs", "de la République", "de la Libération", "de la Forge", "du Pont",
		"du Bourg", "de la Croix", "de la Liberté", "de la Poste", "de la Paix", "des Vignes", "de la Chapelle", "du Cimetière",
		"du Bois", "de la Forêt", "du Calvaire", "de la Plaine", "du Port", "de la Plage", "de la Vallée", "du Marché", "du Puits",
		"de la Source", "du Four", "du Presbytère", "de la Motte", "des Fossés", "du Canal", "de la Rivière", "de l'Étang", "de l'Écluse",
		"de la Ferme", "de la Garenne", "de la Butte", "du Coteau", "du Lac", "de la Tour", "du Tertre", "des Remparts",
		"de la Concorde", "de l'Europe", "de l'Industrie", "de l'Avenir", "de l'Abbaye", "de l'Hôpital", "du Couvent", "des Tanneurs",
		"des Tisserands", "des Potiers", "des Carrières", "de la Tuilerie", "de la Briqueterie", "de la Filature", "des Forges", "de la Scierie",
		"du Colombier", "des Hirondelles", "des Alouettes", "des Rossignols", "des Mésanges", "du Chêne Vert", "de la Pierre Levée",
		"de l'Ancienne Gare", "de la Petite Vitesse", "du Vieux Chemin", "de la Fosse aux Loups", "du Clair Logis", "de Belle Vue",
		"du Bel Air", "du Beau Site", "du Soleil Levant", "du Couchant", "de la Grande Ourse", "de l'Observatoire", "des Quatre Vents",
		"des Trois Fontaines", "des Deux Ponts", "des Sept Sources", "du Haut Village", "du Bas Village", "de la Basse Cour", "de l'Aumône",
		"du Gué", "de la Passerelle", "du Bac", "de l'Embarcadère", "des Pêcheurs", "des Marins", "des Mariniers", "du Phare", "de la Dune",
		"des Sables", "de la Falaise", "des Glaciers", "des Cimes", "du Belvédère", "du Panorama", "de l'Alpage", "des Bergers", "de la Transhumance",
		"de la Laiterie", "du Pressoir", "des Vendanges", "du Tonnelier", "du Maréchal-Ferrant", "du Sabotier", "de la Poterne", "du Beffroi",
		"de l'Horloge", "du Cloître", "du Chapitre", "des Capucins", "des Cordeliers", "des Ursulines", "du Séminaire", "de la Commanderie",
		"de la Sous-Préfecture", "du Tribunal", "du Théâtre", "du Cirque", "de la Comédie", "des Beaux-Arts", "du Musée", "de la Bibliothèque"}
	plants = [...]string{"Lilas", "Acacias", "Tilleuls", "Chênes", "Peupliers", "Marronniers", "Rosiers", "Érables", "Platanes", "Noyers",
		"Cerisiers", "Pommiers", "Saules", "Bouleaux", "Hêtres", "Frênes", "Charmes", "Pins", "Sapins", "Mimosas", "Lauriers", "Oliviers",
		"Amandiers", "Mûriers", "Genêts", "Bruyères", "Fougères", "Ajoncs", "Aubépines", "Églantiers", "Glycines", "Hortensias",
		"Camélias", "Magnolias", "Coquelicots", "Bleuets", "Pervenches", "Primevères", "Jonquilles", "Violettes", "Iris", "Lavandes"}
	famous = [...]string{"Victor Hugo", "Jean Moulin", "Pasteur", "Jules Ferry", "du Général de Gaulle", "Jean Jaurès", "Gambetta",
		"Émile Zola", "Voltaire", "Molière", "Lamartine", "Jeanne d'Arc", "Marie Curie", "Claude Monet", "Jacques Prévert",
		"George Sand", "Jean Mermoz", "Antoine de Saint-Exupéry", "du Maréchal Foch", "Aristide Briand", "Louise Michel", "Simone Veil",
		"Georges Brassens", "Edith Piaf", "Frédéric Mistral", "Paul Cézanne", "Maurice Ravel", "Hector Berlioz", "Joliot-Curie", "La Fayette"}
	dates = [...]string{"du 8 Mai 1945", "du 11 Novembre 1918", "du 14 Juillet", "du 19 Mars 1962", "du 4 Septembre", "du 1er Mai",
		"du 18 Juin 1940", "du 6 Juin 1944", "du 22 Août 1944", "du 3 Février", "du 26e Régiment", "des 4 Saisons"}
	saints = [...]string{"Saint-Martin", "Saint-Jean", "Saint-Pierre", "Notre-Dame", "Sainte-Anne", "Saint-Michel", "Saint-Nicolas",
		"Saint-Roch", "Saint-Jacques", "Saint-Étienne", "Saint-Laurent", "Sainte-Catherine", "Saint-Vincent", "Sainte-Barbe",
		"Saint-Éloi", "Saint-Hilaire", "Saint-Antoine", "Sainte-Marguerite", "Saint-Privat", "Saint-Exupère", "Sainte-Énimie"}
	sizes = [...]string{"Grand", "Petit", "Vieux", "Nouveau", "Haut", "Bas", "Long", "Gros", "Beau", "Rond"}
	spots = [...]string{"Pré", "Champ", "Bois", "Moulin", "Pont", "Puits", "Clos", "Verger", "Jardin", "Château", "Lavoir", "Four", "Mur",
		"Rocher", "Ravin", "Marais", "Vallon", "Plateau", "Mas", "Chêne", "Tilleul", "Hameau", "Bourg", "Fossé", "Sillon", "Buisson"}
	forenames = [...]string{"Jean", "Marie", "Pierre", "Louis", "Paul", "Jeanne", "Henri", "André", "Marcel", "Lucie", "Georges", "Émile",
		"Charles", "Suzanne", "René", "Roger", "Albert", "Berthe", "Léon", "Eugène", "Marthe", "Maurice", "Raymond", "Yvonne", "Gaston",
		"Félix", "Alphonse", "Auguste", "Rose", "Édouard", "Ernest", "Ferdinand", "Germaine", "Gilbert", "Hélène", "Irène", "Jules",
		"Joseph", "Lucien", "Madeleine", "Noël", "Odette", "Philippe", "Rémi", "Robert", "Simone", "Théophile", "Valentin", "Xavier", "Zélie"}
	surnames = [...]string{"Arnaudel", "Aubrac", "Barthaud", "Bastide", "Beaulieu", "Bergeron", "Boissière", "Bonnafous", "Bourdelin",
		"Brunel", "Cabanel", "Cazalis", "Chabrier", "Chastang", "Combaluzier", "Courtade", "Crozat", "Dallemagne", "Darmont", "Delmas",
		"Desbrosses", "Dufrêne", "Dumazel", "Escoffier", "Estival", "Fabrègues", "Fauconnet", "Ferrandon", "Fontanille", "Fournel", "Gaillardet",
		"Garrigou", "Gaudemar", "Gineste", "Granier", "Guérandel", "Hautecombe", "Herbelin", "Issaly", "Jalabert", "Jouvenel", "Kermadec",
		"Labrousse", "Lacombe", "Lagarrigue", "Lamoureux", "Lanthier", "Lartigue", "Lavergne", "Le Bihan", "Le Guennec", "Lenormand", "Lestrade",
		"Malaval", "Malbosc", "Marcillac", "Maurin", "Mazauric", "Mercadier", "Montagnac", "Moreuil", "Nogaret", "Olivier", "Orsini", "Pagès",
		"Palanque", "Pascalin", "Peyrac", "Pradeilles", "Puech", "Quintard", "Rambaud", "Raynal", "Ribeyre", "Rochefort", "Roquefeuil",
		"Rouvière", "Sabatier", "Salvan", "Sarrazin", "Ségala", "Serres", "Soulier", "Tardieu", "Teissèdre", "Terrasson", "Tournier",
		"Tréguier", "Urvoy", "Vachères", "Valat", "Vernhet", "Vialard", "Vidalenc", "Vigouroux", "Villaret", "Weissler", "Ybarne", "Zimmerlin"}
	hamlets = [...]string{"Le Bourg", "Le Moulin", "La Croix", "Les Granges", "Le Mas", "La Combe", "Le Serre", "La Bastide", "Le Causse",
		"Les Salles", "La Fage", "Le Viala", "Les Vignals", "Le Chambon", "La Borie", "Le Pouget", "Les Fonts", "La Roche", "Le Cros", "La Vialle",
		"Le Breuil", "La Boissière", "Les Bruyères", "Kerloc'h", "Kerbihan", "Ty Névez", "Le Plessis", "La Touche", "La Haie", "Les Essarts",
		"La Métairie", "Le Bouchet", "La Gravière", "Les Quatre Routes", "Bellevue", "Beauregard", "Montplaisir", "Malbosc", "Chantemerle",
		"Le Haut Bois", "Le Pas du Loup", "Pré Long", "Champ Rond", "Fontfroide", "Aiguebelle", "Puech Haut", "Roquebelle", "Le Tilleul"}
	hamletPrefixes = [...]string{"Mas", "Puech", "Croix de", "Bois", "Clos", "Font", "Moulin de", "Col de", "Grange", "Domaine de", "Ferme", "Combe"}
)
