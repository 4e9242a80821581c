package sitefile_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"lieudit/http/sitefile"
	"lieudit/http/sitefile/mapping"
)

// mustRead reads a file that may have errors.
func mustRead(t *testing.T, file []byte, o sitefile.Options) *sitefile.Import {
	t.Helper()
	i, err := sitefile.Read(bytes.NewReader(file), int64(len(file)), "places.csv", o)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestAFewRowsWithoutAnIDAreLeftOutAndSaid(t *testing.T) {
	t.Parallel()
	file := func(rows, empty int) []byte {
		var out strings.Builder
		out.WriteString("code_uic;libelle;commune\n")
		for n := range rows {
			id := fmt.Sprintf("87%06d", (n*7919+13)%999_983)
			if n < empty {
				id = ""
			}
			fmt.Fprintf(&out, "%s;Gare %d;Mende\n", id, n)
		}
		return []byte(out.String())
	}
	i := readFile(t, file(200, 2), sitefile.Options{})
	if len(i.Sites) != 198 || len(i.Warnings) != 1 || i.Warnings[0].Count != 2 || !strings.Contains(i.Warnings[0].Kind, "no id") {
		t.Errorf("%d sites, %+v", len(i.Sites), i.Warnings)
	}
	if notes := strings.Join(i.Notes(), "\n"); !strings.Contains(notes, `"code_uic"`) || !strings.Contains(notes, "--id") {
		t.Errorf("the choice of the id is not said: %s", notes)
	}
	if i := mustRead(t, file(200, 3), sitefile.Options{}); len(i.Errors) != 1 {
		t.Errorf("many rows without an id: %v", i.Errors)
	}
	o := sitefile.Options{}
	o.Columns.ID = "code_uic"
	if i := readFile(t, file(200, 1), o); len(i.Errors) != 0 || len(i.Sites) != 199 {
		t.Errorf("with --id: %d sites, %v", len(i.Sites), i.Errors)
	}
}

func TestARowOfTotalsIsNoPlace(t *testing.T) {
	t.Parallel()
	for _, last := range []string{"TOTAL;120;;", "Total;;;12,5", "TOTAUX :;120;;", "Sous-total;120;;", "Total général;120;3;"} {
		i := readFile(t, []byte("code magasin;surface;nom;caisses\nM1;60;A;3\nM2;60;B;2\n"+last+"\n"), sitefile.Options{})
		if len(i.Sites) != 2 || len(i.Errors) > 0 || !strings.Contains(strings.Join(i.Notes(), "\n"), "totals") {
			t.Errorf("%s: %d sites, %v, %v", last, len(i.Sites), i.Errors, i.Notes())
		}
	}
	for _, row := range []string{"TOTAL;120;Station;2", "Total Énergies;60;;", "T1;60;TOTAL;2"} {
		if i := readFile(t, []byte("code magasin;surface;nom;caisses\nM1;60;A;3\n"+row+"\n"), sitefile.Options{}); len(i.Sites) != 2 {
			t.Errorf("%s: %d sites, %v", row, len(i.Sites), i.Errors)
		}
	}
}

// contentOf is the JSON of the only site of a file, or of the one with the id 1.
func contentOf(t *testing.T, file string) string {
	t.Helper()
	for _, line := range describeSites(t, mustRead(t, []byte(file), sitefile.Options{})) {
		if text, ok := strings.CutPrefix(line, "1 "); ok {
			return text
		}
	}
	return ""
}

func TestHouseNumbersOfAColumnOfTheirOwnAreNotLost(t *testing.T) {
	t.Parallel()
	for _, names := range []string{"N°;Voie", "N° ;Rue", "Numéro;Adresse", "n;libellé voie", "Num;Nom de la voie", "No;Rue"} {
		file := "id;nom;" + names + ";CP;Ville\n1;A;4;Rue de l'Épine;48000;Mende\n2;B;17;Rue Haute;48000;Mende\n3;C;9;Rue Basse;48000;Mende\n4;D;128;Le Bourg;48000;Mende\n"
		if got, want := contentOf(t, file), `"ligne_1":"4 Rue de l'Épine"`; !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", names, got, want)
		}
	}
	rows := "id;nom;N°;Rue\n1;A;101;Rue de l'Épine\n2;B;102;Rue Haute\n3;C;105;Rue Basse\n4;D;107;Le Bourg\n" // they count the rows, with gaps
	if got := contentOf(t, rows); !strings.Contains(got, `"ligne_1":"Rue de l'Épine"`) || !strings.Contains(got, `"N°":"101"`) {
		t.Errorf("row numbers: got %s", got)
	}
}

func TestAPostcodeAndItsTownInOneColumnAreRead(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"CP VILLE", "CP/Ville", "Code postal / Ville", "cp_ville", "CP - Commune", "Code postal et commune", "cpville", "codepostal_ville", "Ville (CP)", "Ville / CP", "CP+Ville",
		"CP Localité", "code postal", "Ville", "ligne acheminement", "Localisation du lieu"} {
		for _, cell := range []string{"48000 Mende", "48000 - Mende", "Mende (48000)", "Mende 48000", "48000, Mende"} {
			file := "id;nom;adresse;" + name + "\n1;A;3 rue Haute;" + cell + "\n2;B;4 rue Haute;" + strings.ReplaceAll(strings.ReplaceAll(cell, "48000", "48400"), "Mende", "Florac Trois Rivières") + "\n"
			if got, want := contentOf(t, file), `{"nom":"A","adresse":{"ligne_1":"3 rue Haute","code_postal":"48000","commune":"Mende"}}`; got != want {
				t.Errorf("%s, %s: got %s", name, cell, got)
			}
		}
	}
	if got := contentOf(t, "id;nom;ligne\n1;A;A01842\n2;B;C48000\n3;C;B75001\n"); strings.Contains(got, "adresse") {
		t.Errorf("codes of lines: got %s", got)
	}
	i := mustRead(t, []byte("id;nom;cp_ville\n1;A;48000 Mende\n2;B;48400 Florac Trois Rivières\n3;C;Espagne ?\n"), sitefile.Options{})
	if len(i.Warnings) != 1 || !strings.Contains(describeSites(t, i)[2], `"cp_ville":"Espagne ?"`) {
		t.Errorf("a cell that is neither: %+v, %s", i.Warnings, describeSites(t, i))
	}
}

func TestCodesUnderTheNamesThatPortalsGiveThem(t *testing.T) {
	t.Parallel()
	got := contentOf(t, "id;nom;adresse;c_post_code;c_com_code;l_com_name\n1;A;3 rue Haute;48000;48095;Mende\n2;B;4 rue Haute;48400;48061;Florac Trois Rivières\n")
	if want := `"adresse":{"ligne_1":"3 rue Haute","code_postal":"48000","commune":"Mende","code_insee":"48095"}`; !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
	for _, name := range []string{"dept", "Dépt", "nom_dept", "département", "dpt", "libelle_dept"} {
		got := contentOf(t, "id;nom;"+name+"\n1;A;Lozère\n2;B;Paris\n3;C;Lot\n4;D;Paris\n5;E;Paris\n6;F;Paris\n7;G;Paris\n8;H;Paris\n9;I;Paris\n10;J;Paris\n11;K;Paris\n12;L;Paris\n")
		if strings.Contains(got, `"commune"`) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func TestAColumnThatDoesNotHoldWhatItsNameSaysIsSaid(t *testing.T) {
	t.Parallel()
	i := mustRead(t, []byte("id;nom;code postal;telephone\n1;A;Nord;oui\n2;B;Sud;non\n"), sitefile.Options{})
	notes := strings.Join(i.Notes(), "\n")
	for _, want := range []string{`"code postal"`, "code_postal", `"telephone"`} {
		if !strings.Contains(notes, want) {
			t.Errorf("%s is not in %s", want, notes)
		}
	}
}

func TestApostrophesBeforeNumbersAreTakenOffWhereAllCellsHaveOne(t *testing.T) {
	t.Parallel()
	got := contentOf(t, "Id;Name;Address1;Zip;Phone\n1;A;3 rue Haute;'01000;'+33466651234\n2;B;4 rue Haute;'48000;\n")
	if want := `{"nom":"A","adresse":{"ligne_1":"3 rue Haute","code_postal":"01000"},"telephone":"+33466651234"}`; got != want {
		t.Errorf("got %s", got)
	}
	got = contentOf(t, "id;nom;note\n1;A;'7 jours sur 7\n2;B;le 12\n")
	if !strings.Contains(got, `'7 jours`) {
		t.Errorf("an apostrophe of a text: got %s", got)
	}
	i := mustRead(t, []byte("id;nom\n'001;A\n'002;B\n"), sitefile.Options{})
	if ids := describeSites(t, i); !strings.HasPrefix(ids[0], "001 ") || !strings.Contains(strings.Join(i.Notes(), "\n"), "apostrophe") {
		t.Errorf("ids: %s, %+v", ids, i.Fixed)
	}
}

func TestAFourDigitPostcodeIsFixedAsItsCommuneSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cell, city, want string }{
		{"1000", "Bourg-en-Bresse", "01000"}, {"1000", "", "01000"}, {"6000", "NICE", "06000"}, {"6300", "Nice", "06300"},
		{"8520", "Fontenay-le-Comte", "85200"}, {"8520", "Jard-sur-Mer", "8520"}, {"8520", "", "08520"}, {"8540", "Moutiers-les-Mauxfaits", "8540"},
		{"4400", "Nantes", "44000"}, {"8500", "La Roche-sur-Yon", "85000"}, {"1000", "Lons-le-Nulle-Part", "01000"},
	} {
		i := mustRead(t, []byte("id;nom;code postal;ville\n1;A;"+c.cell+";"+c.city+"\n"), sitefile.Options{})
		got := i.Sites[0].Content.Address.PostalCode
		if got != c.want || got == c.cell && len(i.Warnings) == 0 {
			t.Errorf("%s %s: got %s, want %s; %+v", c.cell, c.city, got, c.want, i.Warnings)
		}
	}
}

// publishedHeaders are the header lines of official registers, as they publish them, with a row and what is to become of it.
var publishedHeaders = map[string]struct {
	header, row, address string
	kept                 []string // texts of the rest of the site
}{
	"RNA Waldec": {
		"id;id_ex;siret;rup_mi;gestion;date_creat;date_decla;date_publi;date_disso;nature;groupement;titre;titre_court;objet;objet_social1;objet_social2;adrs_complement;adrs_numvoie;adrs_repetition;adrs_typevoie;adrs_libvoie;adrs_distrib;adrs_codeinsee;adrs_codepostal;adrs_libcommune;adrg_declarant;adrg_complemid;adrg_complemgeo;adrg_libvoie;adrg_distrib;adrg_codepostal;adrg_achemine;adrg_pays;dir_civilite;siteweb;publiweb;observation;position;maj_time",
		"W481000001;0481001234;;;48SP;1990-01-01;2001-02-03;1990-01-20;0001-01-01;D;S;LES AMIS DU PONT;AMIS;protéger;11000;0;Bât A;4;B;RUE;DE L'EPINE;_;48095;48000;Mende;MME X;;;9 RUE BASSE;;75011;PARIS;FRANCE;PM;amis.exemple.fr;1;;A;2020-01-01 10:00:00",
		`{"ligne_1":"4 B RUE DE L'EPINE","ligne_2":"Bât A","code_postal":"48000","commune":"Mende","code_insee":"48095"}`,
		[]string{`"nom":"LES AMIS DU PONT"`, `"id_ex":"0481001234"`, `"adrg_codepostal":"75011"`, `"site_web":"https://amis.exemple.fr"`},
	},
	"RNA import": {
		"id;id_ex;siret;gestion;date_creat;date_publi;nature;groupement;titre;objet;objet_social1;objet_social2;adr1;adr2;adr3;adrs_codepostal;libcom;adrs_codeinsee;dir_civilite;siteweb;observation;position;rup_mi;maj_time",
		"481S0001;0481009999;;481S;1990-01-01;;D;;CHASSE;chasser;1;0;4 RUE HAUTE;MAIRIE;;48000;MENDE;48095;;;;A;;2010-01-01",
		`{"ligne_1":"4 RUE HAUTE","ligne_2":"MAIRIE","code_postal":"48000","commune":"MENDE","code_insee":"48095"}`,
		[]string{`"nom":"CHASSE"`, `"id_ex":"0481009999"`},
	},
	"RPPS": {
		"Type d'identifiant PP|Identifiant PP|Identification nationale PP|Code civilité d'exercice|Libellé civilité d'exercice|Code civilité|Libellé civilité|Nom d'exercice|Prénom d'exercice|Code profession|Libellé profession|Code catégorie professionnelle|Libellé catégorie professionnelle|Code type savoir-faire|Libellé type savoir-faire|Code savoir-faire|Libellé savoir-faire|Code mode exercice|Libellé mode exercice|Numéro SIRET site|Numéro SIREN site|Numéro FINESS site|Numéro FINESS établissement juridique|Identifiant technique de la structure|Raison sociale site|Enseigne commerciale site|Complément destinataire (coord. structure)|Complément point géographique (coord. structure)|Numéro Voie (coord. structure)|Indice répétition voie (coord. structure)|Code type de voie (coord. structure)|Libellé type de voie (coord. structure)|Libellé Voie (coord. structure)|Mention distribution (coord. structure)|Bureau cedex (coord. structure)|Code postal (coord. structure)|Code commune (coord. structure)|Libellé commune (coord. structure)|Code pays (coord. structure)|Libellé pays (coord. structure)|Téléphone (coord. structure)|Téléphone 2 (coord. structure)|Télécopie (coord. structure)|Adresse e-mail (coord. structure)|Code Département (structure)|Libellé Département (structure)|Ancien identifiant de la structure|Autorité d'enregistrement|Code secteur d'activité|Libellé secteur d'activité",
		"8|10000000001|810000000001|DR|Docteur|M|Monsieur|DUPONT|JEAN|10|Médecin|C|Civil|S|Spécialité|SM26|Médecine générale|L|Libéral|||||C1000|CABINET DU PONT||||4|B|R|Rue|DE L'EPINE||48000 MENDE|48000|48095|Mende|99000|France|0466651234|0612345678||jean@exemple.fr|48|Lozère||CNOM/CNOM|SA07|Cabinet individuel",
		`{"ligne_1":"4 B Rue DE L'EPINE","code_postal":"48000","commune":"Mende","code_insee":"48095","pays":"France"}`,
		[]string{`"nom":"CABINET DU PONT"`, `"telephone":"+33466651234"`, `"email":"jean@exemple.fr"`, `"Code type de voie (coord. structure)":"R"`},
	},
	"FINESS": {
		"structureet;nofinesset;nofinessej;rs;rslongue;complrs;compldistrib;numvoie;typvoie;voie;compvoie;lieuditbp;commune;departement;libdepartement;ligneacheminement;telephone;telecopie;categetab;libcategetab;categagretab;libcategagretab;siret;codeape;codemft;libmft;codesph;libsph;dateouv;dateautor;datemaj;numuai",
		"structureet;480000001;480000002;CH MENDE;CENTRE HOSPITALIER DE MENDE;;;4;R;DE L EPINE;B;;095;48;LOZERE;48000 MENDE;466494949;;355;CH;1102;CH;;8610Z;03;ARS;1;Public;1970-01-01;1970-01-01;2020-01-01;",
		`{"ligne_1":"4 B R DE L EPINE","code_postal":"48000","commune":"MENDE"}`,
		[]string{`"nom":"CENTRE HOSPITALIER DE MENDE"`, `"commune":"095"`},
	},
	"Sirene": {
		"siren,nic,siret,statutDiffusionEtablissement,dateCreationEtablissement,trancheEffectifsEtablissement,anneeEffectifsEtablissement,activitePrincipaleRegistreMetiersEtablissement,dateDernierTraitementEtablissement,etablissementSiege,nombrePeriodesEtablissement,complementAdresseEtablissement,numeroVoieEtablissement,indiceRepetitionEtablissement,dernierNumeroVoieEtablissement,indiceRepetitionDernierNumeroVoieEtablissement,typeVoieEtablissement,libelleVoieEtablissement,codePostalEtablissement,libelleCommuneEtablissement,libelleCommuneEtrangerEtablissement,distributionSpecialeEtablissement,codeCommuneEtablissement,codeCedexEtablissement,libelleCedexEtablissement,codePaysEtrangerEtablissement,libellePaysEtrangerEtablissement,identifiantAdresseEtablissement,coordonneeLambertAbscisseEtablissement,coordonneeLambertOrdonneeEtablissement,complementAdresse2Etablissement,numeroVoie2Etablissement,indiceRepetition2Etablissement,typeVoie2Etablissement,libelleVoie2Etablissement,codePostal2Etablissement,libelleCommune2Etablissement,libelleCommuneEtranger2Etablissement,distributionSpeciale2Etablissement,codeCommune2Etablissement,codeCedex2Etablissement,libelleCedex2Etablissement,codePaysEtranger2Etablissement,libellePaysEtranger2Etablissement,dateDebut,etatAdministratifEtablissement,enseigne1Etablissement,enseigne2Etablissement,enseigne3Etablissement,denominationUsuelleEtablissement",
		"123456789,00011,12345678900011,O,2001-01-01,,,,,true,1,Bât A,4,B,,,RUE,DE L EPINE,48000,MENDE,,,48095,,,,,,,,,9,,RUE,BASSE,75011,PARIS 11,,,75111,,,,,2001-01-01,A,AU PONT,,,",
		`{"ligne_1":"4 B RUE DE L EPINE","ligne_2":"Bât A","code_postal":"48000","commune":"MENDE","code_insee":"48095"}`,
		[]string{`"nom":"AU PONT"`, `"codePostal2Etablissement":"75011"`},
	},
}

func TestOfficialRegistersAreReadByTheirPublishedColumns(t *testing.T) {
	t.Parallel()
	for name, c := range publishedHeaders {
		o := sitefile.Options{}
		o.Columns.ID = "hash:*"
		i := mustRead(t, []byte(c.header+"\n"+c.row+"\n"), o)
		if len(i.Sites) != 1 {
			t.Errorf("%s: %d sites, %v", name, len(i.Sites), i.Errors)
			continue
		}
		got := describeSites(t, i)[0]
		for _, want := range append(c.kept, `"adresse":`+c.address) {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %s is not in %s", name, want, got)
			}
		}
	}
}

func TestHoursThatAreNotReadAreCountedAndShown(t *testing.T) {
	t.Parallel()
	i := mustRead(t, []byte("id;nom;horaires\n1;A;Fermé le lundi\n2;B;sur rendez-vous\n3;C;du lundi au vendredi 9h/18h\n4;D;\n5;E;non\n"), sitefile.Options{})
	if len(i.Warnings) != 1 || i.Warnings[0].Count != 2 || i.Warnings[0].Before != "Fermé le lundi" || !strings.Contains(i.Warnings[0].Kind, "ouvert=true") {
		t.Errorf("got %+v", i.Warnings)
	}
	i = mustRead(t, []byte("id;nom;lundi;mardi\n1;A;9h-12h;9h-12h\n2;B;sur rdv;9h-12h\n3;C;9h/12h;fermé\n"), sitefile.Options{})
	if len(i.Warnings) != 1 || i.Warnings[0].Count != 1 || i.Warnings[0].Lines[0] != 3 {
		t.Errorf("days: got %+v", i.Warnings)
	}
}

func TestAFormulaWithoutAValueClearsNothing(t *testing.T) {
	t.Parallel()
	form := fileForm{kind: "xlsx"}
	names := []string{"id", "nom", "adresse", "code postal", "ville", "téléphone", "lat", "lon", "surface", "note", "tags", "horaires", "email", "site web"}
	full := []string{"1", "A", "3 rue Haute", "48000", "Mende", "+33466651234", "44.5", "3.5", "120", "x", "bio", "24/7", "a@a.fr", "https://a.fr"}
	stored := mustRead(t, []byte(form.encodeXLSX([][]string{names, full})), sitefile.Options{})
	known := map[string]sitefile.Site{"1": stored.Sites[0]}
	want := describeSites(t, stored)[0]
	for column := 1; column < len(names); column++ {
		if names[column] == "lat" {
			continue // with lon
		}
		row := slices.Clone(full)
		row[column] = uncomputed
		if names[column] == "lon" {
			row[column-1] = uncomputed
		}
		i := mustRead(t, []byte(form.encodeXLSX([][]string{names, row, slices.Concat([]string{"2"}, full[1:])})), sitefile.Options{})
		cleared := describeSites(t, i)[0]
		if i.KeepUncomputed(known); cleared == want || describeSites(t, i)[0] != want {
			t.Errorf("%s: got %s, want %s", names[column], describeSites(t, i)[0], want)
		}
		if !strings.Contains(strings.Join(i.Notes(), " "), "formula") {
			t.Errorf("%s is not said", names[column])
		}
	}
	row := slices.Clone(full)
	row[1] = "" // an empty cell clears
	i := mustRead(t, []byte(form.encodeXLSX([][]string{names, row})), sitefile.Options{})
	if i.KeepUncomputed(known); strings.Contains(describeSites(t, i)[0], `"nom"`) {
		t.Errorf("an empty cell: got %s", describeSites(t, i)[0])
	}
}

func TestAColumnThatSaysOpenOrClosedDecidesWhatIsImported(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, open, closed, other string }{
		{"statut", "Ouvert", "Fermé", ""}, {"Statut", "actif", "inactif", "en travaux"}, {"etat", "OPEN", "CLOSED", ""}, {"actif", "oui", "non", "peut-être"}, {"Actif", "1", "0", ""},
		{"is_active", "true", "false", ""}, {"fermé", "non", "oui", ""}, {"etatAdministratifEtablissement", "A", "F", ""}, {"business_status", "OPERATIONAL", "CLOSED_PERMANENTLY", "CLOSED_TEMPORARILY"},
		{"En service", "oui", "non", ""}, {"état", "En activité", "Fermé définitivement", "à ouvrir"},
	} {
		var file strings.Builder
		file.WriteString("id;nom;" + c.name + "\n")
		for n := range 12 {
			fmt.Fprintf(&file, "%d;Place %d;%s\n", n, n, c.open)
		}
		fmt.Fprintf(&file, "12;Z;%s\n13;Y;%s\n", c.closed, c.other)
		i := mustRead(t, []byte(file.String()), sitefile.Options{})
		counts := map[string]int{}
		for _, d := range i.Warnings {
			counts[d.Kind] += d.Count
		}
		isSaid := slices.ContainsFunc(i.Warnings, func(d sitefile.Issue) bool { return d.Before == c.closed && d.Count == 1 })
		if len(i.Sites) != 13 || !isSaid || (c.other != "") != (len(i.Warnings) == 2) {
			t.Errorf("%s: %d sites, %v", c.name, len(i.Sites), counts)
		}
	}
	for name, values := range map[string][]string{ // these are about something else
		"statut": {"Public", "Privé", "Public"}, "ouvert": {"oui", "non", "oui"}, "etat": {"bon", "moyen", "bon"}, "actif": {"non", "non", "non"}, "statut ": {"fermé", "fermé", "fermé"},
	} {
		file := "id;nom;" + name + "\n"
		for n, v := range values {
			file += fmt.Sprintf("%d;Place %d;%s\n", n, n, v)
		}
		if i := mustRead(t, []byte(file), sitefile.Options{}); len(i.Sites) != 3 || !strings.Contains(describeSites(t, i)[0], "proprietes") {
			t.Errorf("%s: %v", name, describeSites(t, i))
		}
	}
	o := sitefile.Options{}
	o.Columns.Columns = map[string]mapping.Target{"statut": {}}
	if i := mustRead(t, []byte("id;nom;statut\n1;A;ouvert\n2;B;fermé\n"), o); len(i.Sites) != 2 {
		t.Errorf("--map proprietes=statut: %v", describeSites(t, i))
	}
	o.Columns.Columns = map[string]mapping.Target{"situation": {Field: mapping.Active}}
	if i := mustRead(t, []byte("id;nom;situation\n1;A;ouvert\n2;B;fermé\n"), o); len(i.Sites) != 1 {
		t.Errorf("--map actif=situation: %v", describeSites(t, i))
	}
}
