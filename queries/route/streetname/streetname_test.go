package streetname

import "testing"

func TestNamesOfTheSameStreetAreTheSame(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{
		{"AV DE LA REPUBLIQUE", "Avenue de la République"},
		{"rue du Gal de Gaulle", "Rue du Général de Gaulle"},
		{"Rue General de Gaulle", "Rue du Général de Gaulle"},
		{"BD ST MICHEL", "Boulevard Saint-Michel"},
		{"Allee Marguerite Duras", "Allée Marguerite Duras"},
		{"R DU DR CALMETTE", "Rue du Docteur Calmette"},
		{"Rue du 8 Mai 1945", "Rue du Huit-Mai-1945"},
		{"Rue du 19 Mars 1962", "Rue du Dix-Neuf-Mars-1962"},
		{"Rue du 25 Août 1944", "rue du Vingt-Cinq Août 1944"},
		{"Place du 20 Août", "place du vingt août"},
		{"Rue François 1er", "Rue François Premier"},
		{"D 7", "Route Départementale 7"},
		{"RN 3", "Route Nationale 3"},
		{"Rd Pt de l'Europe", "Rond-Point de l’Europe"},
		{"Rue Pierre & Marie Curie", "Rue Pierre et Marie Curie"},
		{"Grand'Rue", "Grande Rue"},
		{"Rue D", "RUE D"},
		{"Chemin du Cœur Volant", "CHE DU COEUR VOLANT"},
		{"Cours d'Estienne d'Orves", "CRS D ESTIENNE D ORVES"},
	} {
		if !Same(pair[0], pair[1]) {
			t.Errorf("%q (%q) and %q (%q) differ", pair[0], Fold(pair[0]), pair[1], Fold(pair[1]))
		}
	}
}

func TestNamesOfOtherStreetsDiffer(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{
		{"Rue de la Gare", "Avenue de la Gare"},
		{"Rue du Pont", "Rue du Vieux Pont"},
		{"Rue de Paris", "Rue du Comte de Paris"},
		{"Rue A", "Rue B"},
		{"Rue D", "Rue L"},
		{"Rue sur le Bois", "Rue sous le Bois"},
		{"D 7", "D 70"},
		{"D 7", "N 7"},
		{"Rue du 8 Mai 1945", "Rue du 18 Mai 1945"},
		{"Rue du 10 9", "Rue du 19"},
		{"Rue des Lilas", "Allée des Lilas"},
		{"", ""},
		{"-", "!"},
		{"", "Rue de la Gare"},
	} {
		if Same(pair[0], pair[1]) {
			t.Errorf("%q and %q are both %q", pair[0], pair[1], Fold(pair[0]))
		}
	}
}

// FuzzFold reads anything: a name is the same as itself unless nothing of it is left.
func FuzzFold(f *testing.F) {
	for _, s := range []string{"Rue de l'Église", "D 7", "dix-neuf", "Grand'Rue", "\xff", "vingt"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if key := Fold(s); Same(s, s) != (key != "") {
			t.Fatalf("%q has the key %q and is not the same as itself", s, key)
		}
	})
}
