import java.io.FileInputStream;
import org.verapdf.gf.foundry.VeraGreenfieldFoundryProvider;
import org.verapdf.pdfa.Foundries;
import org.verapdf.pdfa.flavours.PDFAFlavour;

/** Prints the faults of PDF files as PDF/A-3B. */
public class CheckPdfA {
  public static void main(String[] files) throws Exception {
    VeraGreenfieldFoundryProvider.initialise();
    var flavour = PDFAFlavour.PDFA_3_B;
    for (var file : files)
      try (var in = new FileInputStream(file);
          var parser = Foundries.defaultInstance().createParser(in, flavour);
          var validator = Foundries.defaultInstance().createValidator(flavour, false)) {
        var result = validator.validate(parser);
        System.out.println(file + " " + (result.isCompliant() ? "compliant" : "faulty"));
        for (var fault : result.getTestAssertions())
          System.out.println("  " + fault.getRuleId() + " " + fault.getMessage() + " " + fault.getLocation().getContext());
      }
  }
}
