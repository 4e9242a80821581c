package routertest

// drawing is the town. A quarter begins with "# name", or "# name east south" with the metres of a column and of a line. Then
// follow its junctions, as letters where they lie (lines between them are only for the eye), an empty line, and its roads:
//
//	ABC Name of the road | tag=value…     a road through junctions; a residential street unless a tag says otherwise
//	node A tag=value…                     the tags of a junction
//	no_left_turn AB B BC                  a restriction from a road via a junction or a road to a road
//
// Every quarter hangs on one through road, the Route des Quartiers, which passes its junction 0. So quarters do not lead around
// each other. An island has no junction 0.
const drawing = `
# oneway
0---A------B---E
    |      |
    D------C

0A Rue de l'Avance
AB Rue Montante | oneway=yes
BE Rue de l'Est
BC Rue Courte
DC Rue Basse | oneway=-1
DA Rue du Retour

# restricted
0---A---B---E
    |   |
    D---C

0A Avenue du Panneau
AB Rue du Panneau
BE Rue du Fond
BC Rue Ronde
CD Rue Carrée
DA Rue Interdite
no_right_turn 0A A DA

# straight
    N
    |
0---A---B---E
    |   |
    D---C

0A Avenue Droite
AN Rue du Clocher
AB Rue Droite
BE Rue du Bout
BC Rue de la Source
CD Rue du Lavoir
DA Rue de la Fontaine
only_straight_on 0A A AB

# byway
0---A---B---E
    |   |
    D---C

0A Avenue de la Gare
AB Rue de la Gare
BE Rue du Dépôt
BC Rue des Rails
CD Rue du Quai
DA Rue du Butoir
no_right_turn 0A AB BC

# onlybyway
0---A---B--------------E
    |   |
    D---C

0A Avenue du Port
AB Rue du Port
BE Rue du Phare
BC Rue des Docks
CD Rue des Grues
DA Rue de l'Ancre
only_straight_on 0A AB BE

# roundabout
      N
      |
      n
0----w e----E
      s
      |
      S

0w Avenue de l'Ouest
nN Avenue du Nord
eE Avenue de l'Est
sS Avenue du Sud
wsenw Place Ronde | junction=roundabout

# ferry
0---A~~~~~~~~B---C

0A Rue de la Cale
AB Bac de la Rivière | route=ferry highway= motor_vehicle=yes foot=yes bicycle=yes duration=00:05
BC Rue de l'Autre Rive

# toll
0---A--------------------B---E--------F---G
    |                    |
    D--------------------C

0A Rue du Guichet
AB Voie Payante | highway=primary toll=yes maxspeed=80
BE Rue de la Barrière
ADCB Rue Gratuite
EF Pont Payant | highway=primary toll=yes maxspeed=80
FG Rue du Bout du Pont

# motorway 10 20
0----------A--------------------------------------------------------------------------------B----------E
           |                                                                                |
           P================================================================================Q

0ABE Rue de la Rocade | maxspeed=30
AP Accès Ouest | highway=motorway_link oneway=yes
PQ Autoroute de la Ville | highway=motorway oneway=yes maxspeed=110
QB Accès Est | highway=motorway_link oneway=yes

# names 20 45
0----A----------B
     |          |
     D----------C
     |          |
     F----------G

0A Rue du Lien
AB Rue Haute
ADF Montée de la Côte
BCG Montée du Bois
DC Rue Basse
FG Rue Profonde

# deadend
0---A-----B
    |
    C

0A Rue du Moulin
AB Impasse du Moulin
AC Rue de la Meule

# bollard
0---A--x--B---E
    |     |
    D-----C

0A Rue de la Borne
AxB Rue Fermée
node x barrier=bollard
BE Rue de la Chaîne
ADCB Rue du Contour

# gate
0---A--x--B---E
    |     |
    D-----C

0A Rue de la Grille
AxB Allée du Château
node x barrier=gate access=no
BE Rue de la Loge
ADCB Rue du Parc

# bridge
          N
          |
0---A-----|-----B---E
    |     |     |
    D-----S-----C

0A Rue d'en Bas
AB Rue sous le Pont
BE Rue d'Aval
ADSCB Rue de la Rampe
SN Rue du Pont | bridge=yes layer=1

# loop
0---A---B
    |   |
    D---C

0A Rue du Square
ABCDA Square de la Boucle

# dual 50 20
0---A------------B---E
    C------------D

0A Rue d'Entrée
BA Boulevard Double | oneway=yes
CD Boulevard Double | oneway=yes
AC Rue de Jonction
BD Rue de Traverse
BE Rue de Sortie

# footway
0---A---B---E
    |   |
    D---C

0A Rue des Écoles
AB Passage des Écoliers | highway=footway
BE Rue du Préau
ADCB Rue du Bus

# cycleway
0---A---B---E
    |   |
    D---C

0A Rue du Vélo
AB Piste du Canal | highway=cycleway
BE Rue du Canal
ADCB Rue des Camions

# contraflow
0---A---B---E
    |   |
    D---C

0A Rue du Marché
AB Rue Étroite | oneway=yes oneway:bicycle=no
BE Rue des Halles
ADCB Rue Large

# slow
0---A----------B---E
    |          |
    D----------C

0A Rue du Départ
AB Chemin Lent | maxspeed=10
BE Rue d'Arrivée
ADCB Déviation Rapide | highway=primary maxspeed=80

# narrow
0---A----------B---E
    |          |
    D----------C

0A Rue du Gué
AB Chemin Creux | highway=unclassified lanes=1
BE Rue du Lavoir
ADCB Route du Plateau | highway=unclassified

# twoways
    B--------------------C
    |                    |
0---A                    D---E
    |                    |
    F--------------------G

0A Rue du Choix
ABCD Rue de la Colline | highway=tertiary maxspeed=45
AFGD Rue de la Vallée | highway=tertiary
DE Rue du Rendez-vous

# island
                                                                                    A----B

AB Rue de l'Île

# corner
0---A------B
    |      |
    D------C

0A Rue de l'Angle
AB Rue de l'Équerre
CB Rue Montée | oneway=yes
ADC Rue du Détour

# othercorner
0---A------B
    |      |
    D------C

0A Rue de l'Angle
CB Rue Montée | oneway=yes
AB Rue de l'Équerre
ADC Rue du Détour

# cornerout
0---A------B
    |      |
    D------C

0A Rue de l'Angle
BC Rue Descente | oneway=yes
AB Rue de l'Équerre
ADC Rue du Détour

# terrace 50 20
0---A-----------------B
    C-----------------D

0A Rue de la Falaise
AB Rue d'en Haut
CD Rue d'en Bas
BD Rampe de la Falaise

# banned
0---A------B------E
           |
           C

0A Rue du Juge
AB Rue du Greffe
CB Rue de l'Huissier
BE Rue du Barreau
no_straight_on AB B BE
no_left_turn CB B BE

# pocket
0---A------------X-----Y-----Z

0A Rue de la Nasse
AX Rue du Filet
XYZ Rue du Verveux | oneway=yes

# outlet
0---A------------X-----Y-----Z

0A Rue de la Source
AX Rue du Ruisseau
ZYX Rue de la Cascade | oneway=yes

# private
0---A---B---E
    |   |
    |   |
    |   |
    D---C

0A Rue du Rempart
AB Allée Privée | access=private
BE Rue du Fossé
ADCB Rue du Détour

# delivery
0---A---B---E
    |   |
    |   |
    |   |
    D---C

0A Rue du Comptoir
AB Rue des Livraisons | motor_vehicle=destination
BE Rue du Magasin
ADCB Rue des Chalands

# estate
0---A---P---Q---B---E
    |           |
    |           |
    D-----------C

0A Rue du Domaine
AP Allée d'Entrée | access=private
PQ Rue des Lilas
QB Allée de Sortie | access=private
BE Rue du Verger
ADCB Rue du Mur

# ahead
0---A---B---E
    |   |   |
    D---C---F

0A Rue de l'Octroi
AB Rue de la Herse | oneway=yes
BE Rue du Guet
BC Rue de la Poterne
EF Rue des Douves
FC Rue du Glacis
CDA Rue de Ronde
no_right_turn AB B BC

# yard
0---A---------------B---E
    |               |
    P---------------Q

0A Rue du Chantier
AB Route du Chantier | highway=primary maxspeed=80
AP Entrée du Chantier | access=private
PQ Piste du Chantier | access=private maxspeed=10
QB Sortie du Chantier | access=private
BE Rue de la Grue

# lodge
0---A---x---B---E
    |       |
    |       |
    |       |
    D-------C

0A Rue du Haras
AxB Rue du Portail
node x barrier=gate access=private
BE Rue du Manège
ADCB Rue des Écuries

# trackside 50 20
0---A----------B---E
    |          |
    D----------C

0A Rue du Halage
AB Route Nationale | highway=primary
BE Rue du Port
ADCB Voie Verte | highway=cycleway
`
