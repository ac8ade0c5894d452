package catalogue

// The sizes and checksums are those that TensorFlow Datasets, Keras and torchvision publish.
func init() {
	Register(
		Item{Name: "cifar10", Kind: Images, About: "60,000 images of 10 classes, 32×32",
			Unpacked: 200 << 20, Archives: []File{
				toronto("cifar-10-binary.tar.gz", 170052171,
					"c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"),
				toronto("cifar-10-python.tar.gz", 170498071,
					"6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"),
			}},
		Item{Name: "cifar100", Kind: Images, About: "60,000 images of 100 classes, 32×32",
			Unpacked: 200 << 20, Archives: []File{
				toronto("cifar-100-binary.tar.gz", 168513733,
					"58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"),
				toronto("cifar-100-python.tar.gz", 169001437,
					"85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7"),
			}},
		Item{Name: "mnist", Kind: Images, About: "70,000 digits, 28×28, gray", Files: files([]string{
			"https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/",
		}, []File{
			{Name: "train-images-idx3-ubyte.gz", Size: 9912422,
				SHA256: "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
			{Name: "train-labels-idx1-ubyte.gz", Size: 28881,
				SHA256: "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
			{Name: "t10k-images-idx3-ubyte.gz", Size: 1648877,
				SHA256: "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
			{Name: "t10k-labels-idx1-ubyte.gz", Size: 4542,
				SHA256: "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"},
		})},
		Item{Name: "fashion-mnist", Kind: Images, About: "70,000 pieces of clothing, 28×28, gray",
			Files: files([]string{
				"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
				"https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
			}, []File{
				{Name: "train-images-idx3-ubyte.gz", Size: 26421880,
					SHA256: "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
				{Name: "train-labels-idx1-ubyte.gz", Size: 29515,
					SHA256: "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
				{Name: "t10k-images-idx3-ubyte.gz", Size: 4422102,
					SHA256: "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
				{Name: "t10k-labels-idx1-ubyte.gz", Size: 5148,
					SHA256: "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"},
			}), Classes: []string{"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt",
				"Sneaker", "Bag",
				"Ankle boot"}},
		imagenette("imagenette", "10 classes of ImageNet, shorter side 320", 400<<20,
			"imagenette2-320.tgz", 341553947, "5020a9130cea0348272823cb12d2db7e981c6f2afa3dce71ccd5b8013005c55e"),
		imagenette("imagenette-160", "the same, shorter side 160", 200<<20,
			"imagenette2-160.tgz", 98948031, "88daccb09b6fce93f45e6c09ddeb269cce705549e6bff322092a2a5a11489863"),
		imagenette("imagenette-full", "the same in full size", 2<<30,
			"imagenette2.tgz", 1556914727, "de32de18a7d8df0114d5e2c3c14cafb9558e8f00441a73aa7953681ad02be49c"),
	)
}

// toronto is a file of CIFAR's home page, which has two addresses.
func toronto(name string, size int64, sum string) File {
	return File{Name: name, Size: size, SHA256: sum,
		Addresses: []string{"https://www.cs.toronto.edu/~kriz/" + name, "https://cave.cs.toronto.edu/kriz/" + name}}
}

func imagenette(name, about string, unpacked int64, file string, size int64, sum string) Item {
	return Item{Name: name, Kind: Images, About: about, Unpacked: unpacked, Archives: []File{
		{Name: file, Size: size, SHA256: sum,
			Addresses: []string{"https://s3.amazonaws.com/fast-ai-imageclas/" + file}},
	}}
}

// files adds the addresses of their folders to a list of files.
func files(folders []string, list []File) []File {
	for i := range list {
		for _, dir := range folders {
			list[i].Addresses = append(list[i].Addresses, dir+list[i].Name)
		}
	}
	return list
}
